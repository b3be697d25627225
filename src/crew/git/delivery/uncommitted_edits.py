"""Checks that a delivery does not touch a person's uncommitted changes."""

import hashlib
import os
import stat
from collections.abc import Container, Sequence
from pathlib import Path

from crew.git import lfs
from crew.git.delivery.checkout import Checkout, Signature, Waiting, signature_of, wait_for
from crew.git.delivery.commit_diff import (
    SUBMODULE,
    SYMLINK,
    FileChange,
    file_changes,
    leaving_submodules,
)
from crew.git.git_command import ask, configured_filters, failure
from crew.git.hardening import common_dir_of
from crew.git.merges.attributes import attributes_worktree
from crew.git.repository import Repository
from crew.git.worktrees.worktree_admin import environment_for


def check_free(
    repo: Repository, checkout: Checkout, changes: Sequence[FileChange], *, old: str, new: str
) -> tuple[Signature | None, ...]:
    """Raise if a change touches anything uncommitted.

    Returns the signatures of the files of `file_changes`.
    """
    by_path = {change.path: change for change in changes}
    files = file_changes(changes)
    _refuse_submodules(checkout, changes, by_path)
    _refuse_filters(repo, checkout, files, new)
    _refuse_staged(checkout, by_path, old)
    seen = tuple(_checked_signature(checkout, change, by_path) for change in files)
    _refuse_edited(checkout, [change for change in files if change.old_mode is not None])
    return seen


def is_index_behind(checkout: Checkout, changes: Sequence[FileChange]) -> bool:
    """Whether the index has the old side of each change, and the checkout the new side."""
    old = {change.path: (change.old_mode, change.old_blob) for change in changes}
    if not old or _index_entries(checkout, old) != {
        p: e for p, e in old.items() if e[0] is not None
    }:
        return False
    here = [_reverse(change) for change in file_changes(changes)]
    try:
        for change in here:
            if change.old_mode is None and os.path.lexists(checkout.path / change.path):
                return False
        _refuse_edited(checkout, [change for change in here if change.old_mode is not None])
    except (OSError, Waiting):
        return False
    return True


def _reverse(change: FileChange) -> FileChange:
    return FileChange(
        path=change.path,
        old_mode=change.new_mode,
        old_blob=change.new_blob,
        new_mode=change.old_mode,
        new_blob=change.old_blob,
    )


def _index_entries(checkout: Checkout, paths: Container[str]) -> dict[str, tuple[str, str]]:
    """Mode and blob of these paths in the index."""
    answer = ask(checkout.path, "ls-files", "--full-name", "-s", "-z", env=checkout.env)
    entries = (entry.partition("\t") for entry in os.fsdecode(answer.out).split("\0") if entry)
    found = {path: entry.split(" ") for entry, _, path in entries if path in paths}
    return {path: (entry[0], entry[1]) for path, entry in found.items()}


def _refuse_submodules(
    checkout: Checkout, changes: Sequence[FileChange], by_path: dict[str, FileChange]
) -> None:
    """Refuse to write into a submodule that is checked out, since it belongs to the person."""
    for change in changes:
        has_repository = os.path.lexists(checkout.path / change.path / ".git")
        if change.new_mode == SUBMODULE and change.old_mode is None and not has_repository:
            _refuse_occupied(checkout, change, by_path)
    for path in leaving_submodules(changes):
        is_replaced = any(one.path.startswith(f"{path}/") for one in changes)
        if is_replaced and os.path.lexists(checkout.path / path / ".git"):
            raise wait_for(
                checkout, f"the submodule {path} is checked out where landed files belong"
            )


def _refuse_filters(
    repo: Repository, checkout: Checkout, changes: Sequence[FileChange], new: str
) -> None:
    """Refuse a file that needs a filter (git-crypt): the person's git has to write it.

    The files of git-lfs crew fills itself, if it is set up as it sets itself up.
    """
    filters, common = configured_filters(checkout.path), repo.common_dir
    has_lfs = lfs.is_used(common)
    if not filters or (filters == {lfs.FILTER} and lfs.is_idle(common)):
        return
    place = attributes_worktree(repo, new)
    stdin = b"".join(os.fsencode(change.path) + b"\0" for change in changes)
    answer = ask(
        place,
        "check-attr",
        "-z",
        "--stdin",
        "filter",
        stdin=stdin,
        env=environment_for(repo.common_dir, place),
    )
    fields = os.fsdecode(answer.out).split("\0")
    values = dict(zip(fields[::3], fields[2::3], strict=False))
    for path, value in values.items():
        if value in filters and not (value == lfs.FILTER and has_lfs):
            raise wait_for(checkout, f"{path} needs the filter {value!r}, which crew does not run")
    blobs = {
        change.path: change.new_blob
        for change in changes
        if change.new_mode is not None and values.get(change.path) == lfs.FILTER
    }
    if has_lfs and (paths := lfs.without_content(common, blobs)):
        missing = lfs.content_missing(common, paths, commit=new)
        raise Waiting(missing.message, hint=missing.hint)


def _refuse_staged(checkout: Checkout, by_path: dict[str, FileChange], old: str) -> None:
    args = ("diff-index", "--cached", "--name-only", "--no-renames", "-z", old)
    answer = ask(checkout.path, *args, env=checkout.env)
    if answer.code != 0:
        raise failure(args, answer)
    for path in os.fsdecode(answer.out).split("\0"):
        if path in by_path:
            raise wait_for(checkout, f"{path} is staged")


def _checked_signature(
    checkout: Checkout, change: FileChange, by_path: dict[str, FileChange]
) -> Signature | None:
    file = checkout.path / change.path
    if change.old_mode is None:
        _refuse_occupied(checkout, change, by_path)
        return None
    _refuse_replaced_folders(checkout, change, by_path)
    try:
        signature = signature_of(file)
    except OSError:
        raise wait_for(checkout, f"{change.path} is deleted") from None
    kind = stat.S_ISLNK if change.old_mode == SYMLINK else stat.S_ISREG
    if not kind(signature[3]):
        raise wait_for(checkout, f"{change.path} is changed")
    return signature


def _refuse_occupied(
    checkout: Checkout, change: FileChange, by_path: dict[str, FileChange]
) -> None:
    """Refuse if a file exists in the place of a new one, ignored or not, identical or not."""
    file = checkout.path / change.path
    if file.is_dir() and not file.is_symlink():
        names = (Path(top) / name for top, _, names in os.walk(file) for name in names)
        left = (str(name.relative_to(checkout.path)) for name in names)
        if stray := next((name for name in left if not _disappears(name, by_path)), None):
            raise wait_for(checkout, f"the untracked file {stray} is in the way")
    elif os.path.lexists(file):
        raise wait_for(checkout, f"the untracked file {change.path} is in the way")
    _refuse_replaced_folders(checkout, change, by_path)


def _refuse_replaced_folders(
    checkout: Checkout, change: FileChange, by_path: dict[str, FileChange]
) -> None:
    """Refuse if a link or a file is where a folder of this path belongs: it could lead outside."""
    for parent in Path(change.path).parents[:-1]:
        above = checkout.path / parent
        is_other = above.is_symlink() or (above.exists() and not above.is_dir())
        if is_other and not _disappears(str(parent), by_path):
            raise wait_for(checkout, f"the untracked file {parent} is in the way")


def _disappears(path: str, by_path: dict[str, FileChange]) -> bool:
    return path in by_path and by_path[path].new_mode is None


def _refuse_edited(checkout: Checkout, changes: Sequence[FileChange]) -> None:
    """Compare content, not cached file data: a file can be marked as assumed unchanged."""
    has_modes = ask(
        checkout.path, "config", "--type=bool", "core.fileMode", env=checkout.env
    ).out.strip()
    # Git leaves line ends as they were committed; `hash-object` converts them by the attributes.
    converted = _differing(checkout, changes)
    differing = _differing(checkout, converted, "--no-filters")
    blobs = {one.path: one.old_blob for one in differing if one.old_mode != SYMLINK}
    common = Path(os.path.normpath(common_dir_of(checkout.git_dir)))
    filled = lfs.has_content_of(checkout.path, common, blobs)
    edited = {change.path for change in differing} - filled
    for change in changes:
        file = checkout.path / change.path
        is_executable = bool(file.lstat().st_mode & stat.S_IXUSR)
        wrong_mode = has_modes != b"false" and is_executable != (change.old_mode == "100755")
        if change.path in edited or (wrong_mode and change.old_mode != SYMLINK):
            raise wait_for(checkout, f"{change.path} has uncommitted changes")


def _differing(
    checkout: Checkout, changes: Sequence[FileChange], *options: str
) -> list[FileChange]:
    """The changes whose files have other content than their old blobs."""
    blobs = _blob_ids(checkout, changes, *options) if changes else []
    return [one for one, blob in zip(changes, blobs, strict=True) if blob != one.old_blob]


def _blob_ids(checkout: Checkout, changes: Sequence[FileChange], *options: str) -> list[str]:
    files = [change for change in changes if change.old_mode != SYMLINK]
    stdin = b"".join(quoted_name(change.path) + b"\n" for change in files)
    args = ("hash-object", "--stdin-paths", *options)
    answer = ask(checkout.path, *args, stdin=stdin, env=checkout.env)
    if answer.code != 0:
        raise wait_for(checkout, "a file is being changed by another process")
    hashed = iter(answer.out.decode().split())
    return [
        _link_id(checkout.path / change.path, change.old_blob)
        if change.old_mode == SYMLINK
        else next(hashed)
        for change in changes
    ]


def _link_id(link: Path, like: str) -> str:
    content = os.fsencode(link.readlink())
    algorithm = "sha1" if len(like) == 40 else "sha256"
    return hashlib.new(
        algorithm, b"blob %d\0" % len(content) + content, usedforsecurity=False
    ).hexdigest()


def quoted_name(path: str) -> bytes:
    """Quote a name for git, so that a line end in it does not split it."""
    return b'"' + b"".join(b"\\%03o" % byte for byte in os.fsencode(path)) + b'"'
