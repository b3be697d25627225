"""The change that a reviewer judges, as part of its prompt: not every reviewer has a shell."""

from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.quotation import quoted_start
from crew.git.git_command import git

if TYPE_CHECKING:
    from crew.domain.rows.task import Task
    from crew.workplace import Workplace

LONGEST = 40_000  # characters, about 10,000 tokens
MOST_LINES = 5_000
_PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
_EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
_NO_ATTRIBUTES = ("-c", "core.bare=true", "-c", f"attr.tree={_EMPTY_TREE}")
"""Neither those of a checkout nor, in newer versions of git, those of HEAD: `*.py -diff`, which an
agent can commit, would hide later changes from reviewers."""


def diff_words(workplace: "Workplace", task: "Task", commit: str) -> str:
    """The changed files and the beginning of the diff, quoted; empty if there is no difference."""
    repo = workplace.repo.common_dir
    try:
        start = git(repo, "merge-base", f"refs/heads/{task.target}", commit)
        files = git(repo, *_NO_ATTRIBUTES, "diff-tree", "-r", "--numstat", *_PLAIN, start, commit)
        is_short = sum(_lines(line) for line in files.splitlines()) <= MOST_LINES
        shown = (*_NO_ATTRIBUTES, "diff-tree", "-r", "-p", *_PLAIN, start, commit)
        change = git(repo, *shown) if is_short else ""
    except CrewError:  # such as an unrelated history, which the merge reports
        return ""
    if not files:
        return ""
    changed = _as_text(f"{files}\n\n{change}" if change else files)
    what = "Its diff" if is_short and len(changed) < LONGEST else "The beginning of its diff"
    return (
        f"The work changes these files (lines added, lines removed, name). {what} follows; "
        f"read the files themselves for the rest:\n{quoted_start(changed, most=LONGEST)}\n"
    )


def _lines(numstat: str) -> int:
    """The changed lines of a file; a binary file has none."""
    return sum(int(word) for word in numstat.split("\t")[:2] if word.isdigit())


def _as_text(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")
