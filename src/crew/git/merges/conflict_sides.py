"""Collects both sides of a conflict: hunks, the other side's commits, and what a result lost."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from crew.domain.merging.conflict_text import MOST_FILES, MOST_LANDED, Hunks, Landed, Sides
from crew.domain.runs.lost_sides import LostSide, Side, Versions, lost_sides
from crew.git import lfs
from crew.git.delivery.commit_diff import SUBMODULE, changed_paths
from crew.git.git_command import ask, git
from crew.git.merges.merges import MergeConflict, contents, merged_tree
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
    """Each conflict with a few lines of context; empty for a deleted file, and for no text."""
    is_shown = blob is not None and len(blob) <= LONGEST_BLOB and b"\0" not in blob
    if blob is None or not is_shown or lfs.is_in_conflict(blob):
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


LARGEST_JUDGED = 20_000_000
"""In bytes. Of a larger file only the ids are compared, as of one that is not text."""

MOST_JUDGED = 100_000_000
"""In bytes, of all versions together that are read at once."""

Entry = tuple[str, str]
"""The mode and the id of a file's content; both are empty where the file does not exist."""

_NOTHING: Entry = ("", "")


def dropped_sides(repo: Repository, *, ours: str, theirs: str, result: str) -> tuple[LostSide, ...]:
    """What the result lacks of each side, even without a conflict (`-s ours`).

    A file that is as git itself merges it is in order.
    """
    base = ask(repo.common_dir, "merge-base", ours, theirs).out.decode().strip()
    if not base:
        return ()
    found = _all_entries(repo, base, (ours, theirs, result, *_merged(repo, ours, theirs)))
    judged = {path: entries[:4] for path, entries in found.items() if not _is_plain(*entries)}
    lost = _lost(repo, judged.items())
    if lost and len(judged) < len(found):  # what is missing may have moved to another file
        paths = {one.path for one in lost}
        every = {path: entries[:4] for path, entries in found.items()}
        lost = tuple(one for one in _lost(repo, every.items()) if one.path in paths)
    return tuple(_with_owners(repo, base, theirs, one) for one in lost)


def _merged(repo: Repository, ours: str, theirs: str) -> tuple[str]:
    """The tree of git's own merge; files in conflict have marks in it."""
    tree = merged_tree(repo, onto=ours, head=theirs)
    return (tree.tree if isinstance(tree, MergeConflict) else tree,)


def _all_entries(
    repo: Repository, base: str, others: tuple[str, ...]
) -> dict[str, tuple[Entry, ...]]:
    """Each path that is not the same everywhere, with its entry in the base and in the others."""
    changes = [{one.path: one for one in changed_paths(repo, base, other)} for other in others]
    found: dict[str, tuple[Entry, ...]] = {}
    for path in dict.fromkeys(path for one in changes for path in one):
        known = next(one[path] for one in changes if path in one)
        before = _entry(known.old_mode, known.old_blob)
        found[path] = (
            before,
            *(
                _entry(one[path].new_mode, one[path].new_blob) if path in one else before
                for one in changes
            ),
        )
    return found


def _entry(mode: str | None, blob: str) -> Entry:
    return (mode, blob) if mode else _NOTHING


def _is_plain(base: Entry, ours: Entry, theirs: Entry, result: Entry, merged: Entry) -> bool:
    """Whether the result is in order without a look into the file."""
    if result == merged != _NOTHING:  # a file that is gone may be renamed
        return True
    return theirs == base and (result != base or ours == base)


def _lost(repo: Repository, files: Iterable[tuple[str, tuple[Entry, ...]]]) -> tuple[LostSide, ...]:
    files = tuple(files)
    sizes = _sizes(repo, {entry for _, entries in files for entry in entries})
    texts = {one for one, size in sizes.items() if size <= LARGEST_JUDGED}
    lost: list[LostSide] = []
    while files:
        batch, room = 0, MOST_JUDGED
        for _, entries in files:
            room -= sum(sizes.get(entry, 0) for entry in set(entries) & texts)
            if room < 0 and batch:
                break
            batch += 1
        lost += lost_sides(_versions(repo, dict(files[:batch]), texts))
        files = files[batch:]
    return tuple(lost)


def _sizes(repo: Repository, entries: set[Entry]) -> dict[Entry, int]:
    """The sizes of the contents that are in this repository."""
    wanted = sorted(one for one in entries if one != _NOTHING and one[0] != SUBMODULE)
    stdin = b"".join(f"{blob}\n".encode() for _, blob in wanted)
    lines = ask(repo.common_dir, "cat-file", "--batch-check", stdin=stdin).out.decode().splitlines()
    words = (line.split(" ") for line in lines)
    return {
        entry: int(said[2])
        for entry, said in zip(wanted, words, strict=False)
        if len(said) == 3 and said[2].isdecimal()
    }


def _versions(
    repo: Repository, files: Mapping[str, tuple[Entry, ...]], texts: set[Entry]
) -> dict[str, Versions]:
    """The contents of each file; a stand-in that is no text for pointers and unread ones."""
    wanted = {entry for entries in files.values() for entry in entries} & texts
    blobs = contents(repo, sorted({blob for _, blob in wanted}))

    def content(entry: Entry) -> bytes | None:
        if entry == _NOTHING:
            return None
        found = blobs.get(entry[1]) if entry in wanted else None
        is_text = found is not None and lfs.parse_pointer(found) is None
        return found if is_text else f"\0{entry[1]}".encode()

    return {
        path: Versions(
            base=content(entries[0]),
            ours=content(entries[1]),
            theirs=content(entries[2]),
            result=content(entries[3]),
        )
        for path, entries in files.items()
    }


def _with_owners(repo: Repository, base: str, theirs: str, lost: LostSide) -> LostSide:
    if lost.side is not Side.LANDED:
        return lost
    landed = _landed_commits(repo, base, theirs, (lost.path,))
    return replace(lost, owners=tuple(dict.fromkeys(one.task for one in landed if one.task)))
