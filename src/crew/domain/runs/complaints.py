"""The evidence of a finished round, and the first complaint about it."""

import shlex
from typing import TYPE_CHECKING

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import LONGEST_NOTES, MARK, headline, quoted
from crew.domain.rows.run import Ask
from crew.domain.runs.lost_sides import LostSide, words_of

if TYPE_CHECKING:
    from crew.domain.field_groups import MergeAside

STUBBORN = frozenset(
    {
        *(Ask.REFUSED, Ask.NESTED, Ask.OFF_HEAD, Ask.UNCOMMITTED, Ask.NOTHING_COMMITTED),
        *(Ask.UNPUSHED, Ask.LOST_SIDE, Ask.NO_PLAN),
    }
)
"""Complaints that end a run when they are repeated too often."""


@frozen
class Evidence:
    """What crew found in the worktree after DONE.

    `refused` is why git refuses the commits; `unpushed` are submodules at commits that exist only
    there; `off_head` are commits of the task's branch that are
    not in what is checked out. `gate_passed` is None if the gate did not run; `review_notes` are
    those of reviewers that failed it. `git_says` is why git refuses to commit what is uncommitted.
    `unfinished`: nobody has said that the work is finished, and somebody must.
    """

    head: str
    refused: str = ""
    nested: tuple[str, ...] = ()
    unpushed: tuple[str, ...] = ()
    off_head: tuple[str, ...] = ()
    uncommitted: tuple[str, ...] = ()
    git_says: str = ""
    has_commits: bool = True
    lost_sides: tuple[LostSide, ...] = ()
    unmerged: bool = False
    gate_passed: bool | None = None
    gate_output: str = ""
    gate: str = ""
    conflicts: tuple[str, ...] = ()
    review_notes: str | None = None
    unfinished: bool = False


def complaint(evidence: Evidence) -> tuple[Ask | None, str]:
    """The first thing that is wrong, in an order in which each complaint hides the later ones."""
    nested = "\n".join(ways_out(path) for path in evidence.nested[:20])
    output = quoted(evidence.gate_output, most=LONGEST_NOTES)
    in_order = (
        (evidence.refused, Ask.REFUSED, _quoted_lines((evidence.refused,))),
        (evidence.nested, Ask.NESTED, quoted(nested, most=LONGEST_NOTES)),
        (evidence.unpushed, Ask.UNPUSHED, _quoted_lines(evidence.unpushed)),
        (evidence.off_head, Ask.OFF_HEAD, _quoted_lines(evidence.off_head)),
        (evidence.uncommitted, Ask.UNCOMMITTED, _uncommitted(evidence)),
        (evidence.unmerged, Ask.CONFLICT, ""),
        (evidence.lost_sides, Ask.LOST_SIDE, words_of(evidence.lost_sides)),
        (not evidence.has_commits, Ask.NOTHING_COMMITTED, ""),
        (evidence.gate_passed is False, Ask.RED_GATE, output),
        (evidence.conflicts, Ask.CONFLICT, _quoted_lines(evidence.conflicts)),
        (evidence.review_notes is not None, Ask.REVIEW, evidence.review_notes or ""),
        (evidence.unfinished, Ask.UNFINISHED, ""),
    )
    return next(((ask, notes) for is_wrong, ask, notes in in_order if is_wrong), (None, ""))


def refusal(evidence: Evidence, ask: Ask) -> "MergeAside":
    """The commit whose merge was refused, which a person may accept."""
    return {"merge_refused": evidence.head} if ask == Ask.LOST_SIDE else {}


GIT_SAYS = "crew tried that commit in a copy, where no file can be changed, and git refused it:"


def _uncommitted(evidence: Evidence) -> str:
    """The files, and git's own words if it refuses to commit them."""
    files = _quoted_lines(evidence.uncommitted[:200])
    if not evidence.git_says:
        return files
    return f"{files}\n\n{GIT_SAYS}\n\n{quoted(evidence.git_says, most=LONGEST_NOTES)}"


def words_of_git(notes: str) -> str:
    """The last line with which git refused a commit, from the notes of a complaint."""
    _, found, words = notes.partition(GIT_SAYS)
    lines = [line.removeprefix(MARK).strip() for line in words.splitlines()] if found else []
    return headline(next((line for line in reversed(lines) if line), ""))


def ways_out(path: str) -> str:
    """The commands that bring the files of a nested repository into the commit."""
    name = shlex.quote(path)
    unlink = f"git rm -rfq --cached --ignore-unmatch -- {name}"
    return (
        f"{headline(path)}\n"
        f"    part of your work:      rm -rf {name}/.git && {unlink} && git add -- {name}\n"
        f"    a project of its own:   {unlink} && git submodule add --force -- URL {name}\n"
        f"    neither of the two:     {unlink} && rm -rf {name}"
    )


def _quoted_lines(names: tuple[str, ...]) -> str:
    return quoted("\n".join(map(headline, names)), most=LONGEST_NOTES)


WHY = {
    Ask.RED_GATE: "the gate is red",
    Ask.REFUSED: "git refuses its commits",
    Ask.NESTED: "its work is in a repository inside the worktree, which no commit carries",
    Ask.UNPUSHED: "a submodule is at a commit that exists only in its worktree",
    Ask.OFF_HEAD: "its branch has commits that are not checked out",
    Ask.UNCOMMITTED: "work was left uncommitted",
    Ask.NOTHING_COMMITTED: "nothing was committed",
    Ask.CONFLICT: "it conflicts with what landed before",
    Ask.LOST_SIDE: "its merge drops a part of one side",
    Ask.REVIEW: "the review failed",
    Ask.CHANGES: "a person asked for changes",
    Ask.UNFINISHED: "its agent used all its steps and never said that it is finished",
    Ask.NO_PLAN: "it says complete and has given no plan",
}
