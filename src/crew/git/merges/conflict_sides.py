"""Collects both sides of a conflict: hunks with their base, and the other side's commits."""

from crew.domain.merging.conflict_text import MOST_FILES, MOST_LANDED, Hunks, Landed, Sides
from crew.git.git_command import ask, git
from crew.git.merges.merges import contents, merged_tree
from crew.git.repository import Repository

CONTEXT_LINES = 3
LONGEST_BLOB = 2_000_000
"""In bytes. Hunks of a longer file are not shown."""

_OPENS, _CLOSES = "<<<<<<< ", ">>>>>>> "
_TRAILER = "%(trailers:key=Task,valueonly,separator=%x2C)"


def conflict_sides(repo: Repository, *, ours: str, theirs: str, paths: tuple[str, ...]) -> Sides:
    """The conflicts as `git merge theirs` shows them to the agent with the work `ours`."""
    base = ask(repo.common_dir, "merge-base", ours, theirs).out.decode().strip()
    return Sides(
        base=base,
        hunks=_hunks(repo, ours, theirs, paths[:MOST_FILES]),
        landed=_landed_commits(repo, base, theirs, paths) if base else (),
    )


def _hunks(repo: Repository, ours: str, theirs: str, paths: tuple[str, ...]) -> tuple[Hunks, ...]:
    tree = merged_tree(repo, onto=ours, head=theirs, style="diff3")
    if isinstance(tree, str):
        return ()
    names = {path: f"{tree.tree}:{path}" for path in paths}
    found = contents(repo, list(names.values()))
    texts = {path: _conflict_hunks(found[name]) for path, name in names.items()}
    return tuple(Hunks(path, text) for path, text in texts.items() if text)


def _conflict_hunks(blob: bytes | None) -> str:
    """Each conflict with a few lines of context; empty for a deleted or binary file."""
    if blob is None or len(blob) > LONGEST_BLOB or b"\0" in blob:
        return ""
    lines = blob.decode(errors="replace").split("\n")
    opens = [n for n, line in enumerate(lines) if line.startswith(_OPENS)]
    closes = [n for n, line in enumerate(lines) if line.startswith(_CLOSES)]
    shown = [
        "\n".join(lines[max(0, first - CONTEXT_LINES) : last + 1 + CONTEXT_LINES])
        for first, last in zip(opens, closes, strict=False)
        if first < last
    ]
    return "\n…\n".join(shown)


def _landed_commits(
    repo: Repository, base: str, theirs: str, paths: tuple[str, ...]
) -> tuple[Landed, ...]:
    """The subjects of the commits, newest first. A merge of crew's own names its task."""
    log = git(
        repo.common_dir,
        *("log", "--first-parent", "-n", str(MOST_LANDED), f"--format={_TRAILER}%x09%h %s"),
        *(f"{base}..{theirs}", "--", *(f":(literal){path}" for path in paths[:MOST_FILES])),
    )
    lines = [line.partition("\t") for line in log.split("\n") if line]
    return tuple(Landed(task.strip(), subject) for task, _, subject in lines)
