"""Knows git-lfs without running it: its pointers, its store of contents, and the files they fill.

Of a file in git-lfs a commit has only a pointer: a small text with the SHA-256 and the size of the
content, which is in a store next to git's. A filter turns one into the other. crew's git runs no
filters, since an agent could name any program as one. So crew fills the files itself, and tells
git that a filled file is the one in the commit. The agent's own git-lfs finds the person's store
through the list of other object folders, and writes new contents into a store of the task's own.

A repository without a store pays one look at a folder.
"""

import fcntl
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.git.git_command import ask, git, lfs_wanted
from crew.git.hardening import common_dir_of
from crew.git.merges.attributes import attributes_worktree
from crew.git.repository import Repository, commit_of, landed_commits
from crew.git.task_repository.agent_refs import agent_git_of, read_bytes
from crew.git.task_repository.index_owner import unlike_numbers, with_numbers
from crew.system.atomic_files import put_in_place, sync_to_disk, write_file
from crew.system.crash_points import effect
from crew.system.foreign_files import NotBelieved, Stamp, is_settled, read_foreign, stamp_of

FILTER = "lfs"
"""The name under which git-lfs registers its filter, and which attributes have for its files."""

LONGEST_POINTER = 1024
"""In bytes: git-lfs takes nothing longer for a pointer."""

MOST_TAKEN_IN = 10_000
LARGEST_TAKEN_IN = 2**33
"""How many contents, and how many bytes, crew takes in with the new commits of one step."""

_VERSION = "version https://git-lfs.github.com/spec/v1"
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n"
    rb"oid sha256:([0-9a-f]{64})\nsize (0|[1-9][0-9]{0,17})\n"
)
_OID = re.compile(rb"^oid sha256:[0-9a-f]{64}$", re.MULTILINE)
_LIKE_A_POINTER = re.compile(rb"git-media|hawser|git-lfs")
"""What git-lfs looks for at the beginning of a small file."""
_BEGINNING = 100

_FILES = {"100644", "100755"}
_LARGEST_INDEX = 500_000_000
_BLOCK = 2**20
_LONG_S = 1800.0
_AT_ONCE = 2000
_MOST_REMEMBERED = 4096
_OLDER_NS = 2_000_000_000
_FICLONE = 0x40049409
_TOP = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = _TOP | os.O_NOFOLLOW
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SMALL_BLOBS = f"--filter=combine:object:type=blob+blob:limit={LONGEST_POINTER + 1}"
_CHOOSES = re.compile(rb"fetch(include|exclude)", re.IGNORECASE)


@frozen
class Pointer:
    """What a commit has instead of a file's content."""

    oid: str
    size: int

    def text(self) -> bytes:
        lines = (_VERSION, f"oid sha256:{self.oid}", f"size {self.size}", "")
        return "\n".join(lines).encode()


@frozen
class _Source:
    """The stores that fill files, and the date of the index that names them."""

    stores: tuple[Path, ...]
    at_ns: int


@frozen
class Settled:
    """The files of git-lfs in a folder: `same` have the content that the index names.

    `missing` are those that are still pointers, because their content is not in the store.
    """

    same: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()


class ContentMissing(CrewError):
    """The person's store lacks contents that a task, a gate or a delivery needs."""

    code = "lfs_content_missing"


_pointers: dict[str, Pointer | None] = {}
"""By the id of a blob, which never changes."""
_hashed: dict[str, tuple[Stamp, str]] = {}
"""The SHA-256 of files, which are large and seldom change."""


def parse_pointer(content: bytes) -> Pointer | None:
    """The pointer, if this is one exactly as git-lfs writes it."""
    found = _POINTER.fullmatch(content)
    return Pointer(oid=found[1].decode(), size=int(found[2])) if found else None


def is_in_conflict(content: bytes) -> bool:
    """Whether this is a pointer with the marks of a conflict, whose lines mean nothing."""
    return content.startswith((_VERSION.encode(), b"<<<<<<< ")) and _OID.search(content) is not None


def store_of(common_dir: Path) -> Path:
    return common_dir / "lfs" / "objects"


def is_used(common_dir: Path) -> bool:
    """Whether the person's checkout has contents of git-lfs, and git-lfs to work with them."""
    return os.path.isdir(store_of(common_dir)) and lfs_wanted(common_dir) is not None  # noqa: PTH112


def is_idle(common_dir: Path) -> bool:
    """Whether git-lfs is set up, for all repositories of this person, and this one has no store."""
    return not os.path.isdir(store_of(common_dir)) and lfs_wanted(common_dir) is not None  # noqa: PTH112


def has_content(store: Path, pointer: Pointer) -> bool:
    try:
        found = os.lstat(_file_in(store, pointer.oid))
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size == pointer.size


def content_missing(common_dir: Path, paths: Collection[str], *, commit: str) -> ContentMissing:
    """Why something waits, and the command that brings the contents."""
    root = common_dir.parent if common_dir.name == ".git" else common_dir
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return ContentMissing(
        f"the content of {min(paths)}{more} is not in the store of git-lfs here",
        hint=f"fetch it: git -C {root} lfs fetch origin {commit}",
    )


# What is in a folder ------------------------------------------------------------------------------


def fill(files: Path, git_dir: Path, *, index: Path | None = None, commit: str = "HEAD") -> None:
    """Give the files that crew's git has just written their contents.

    Raises if the store lacks one, unless the person chose to have not all of them.
    """
    found = settle(files, git_dir, index=index, fills=True)
    common = _common(git_dir)
    if found.missing and lfs_wanted(common) == "all" and not _is_chosen(files):
        at = ask(common, "rev-parse", commit, env={"GIT_DIR": str(git_dir)}).out.decode().strip()
        raise content_missing(common, found.missing, commit=at or commit)


def settle(
    files: Path,
    git_dir: Path,
    *,
    index: Path | None = None,
    fills: bool = False,
    attributes: Path | None = None,
    only: Collection[str] | None = None,
) -> Settled:
    """Give the index the numbers of each file whose content is that of its pointer.

    `fills`: files that are pointers get their contents first. `attributes` is a folder that has
    the attributes, if `files` has not. A file with uncommitted changes stays as it is.
    """
    common = _common(git_dir)
    if not is_used(common):
        return Settled()
    index = index or git_dir / "index"
    raw = read_bytes(index, most=_LARGEST_INDEX)
    listed = _listed(attributes or files, git_dir, index) if raw is not None else {}
    if only is not None:
        listed = {path: entry for path, entry in listed.items() if path in only}
    if raw is None or not listed:
        return Settled()
    wanted = fills and lfs_wanted(common) != "none"
    stores = (common, agent_git_of(git_dir))
    source = _Source(stores=stores, at_ns=index.stat().st_mtime_ns) if wanted else None
    found = _stats(files, listed)
    unlike = unlike_numbers(raw, found)
    looked_at = {path for path, one in found.items() if one.st_size <= LONGEST_POINTER} | unlike
    pointers = _pointers_of(common, (listed[path][1] for path in looked_at))
    same, missing = dict[str, os.stat_result](), list[str]()
    for path in sorted(looked_at):
        mode, blob = listed[path]
        if (pointer := pointers[blob]) is None:
            continue
        is_left = found[path].st_size <= LONGEST_POINTER and _is_pointer(files / path, pointer)
        if is_left and source is not None:
            one = _filled(files, path, source, pointer, mode=mode)
            missing += [] if one else [path]
        else:
            one = None if is_left else _with_content(files, path, pointer)
        if one is not None and _is_executable(one) == (mode == "100755"):
            same[path] = one
    _note(index, raw, same)
    return Settled(same=frozenset(same), missing=tuple(missing))


def _note(index: Path, raw: bytes, same: Mapping[str, os.stat_result]) -> None:
    """Write the numbers of these files into an index; not of those that are as young as it.

    Most gits compare the times in whole seconds, and then the content of files of the same second.
    """
    at_ns = index.stat().st_mtime_ns
    second = at_ns // 10**9
    older = {path: one for path, one in same.items() if one.st_mtime_ns // 10**9 < second}
    if unlike_numbers(raw, older):
        _rewrite(index, with_numbers(raw, older), at_ns=at_ns)


def kept_as_pointers(
    files: Path, git_dir: Path, *, index: Path, changed: Iterable[str]
) -> dict[str, str]:
    """The mode and the blob of the pointer, for each file whose content is in the store already.

    A checkpoint has these instead of the contents, which may be large.
    """
    common = _common(git_dir)
    if not is_used(common):
        return {}
    store = store_of(common)
    raw = read_bytes(index, most=_LARGEST_INDEX) or b""
    listed = _stats(files, _listed(files, git_dir, index))
    names = {*unlike_numbers(raw, listed), *_tracked_among(files, git_dir, changed)}
    found = dict[str, str]()
    for path, one in _stats(files, names).items():
        oid = _sha256_of(files, path)
        pointer = Pointer(oid=oid or "", size=one.st_size)
        if oid and one.st_size > LONGEST_POINTER and has_content(store, pointer):
            blob = git(common, "hash-object", "-w", "--stdin", stdin=pointer.text())
            found[path] = f"{'100755' if _is_executable(one) else '100644'} {blob}"
    return found


def has_content_of(files: Path, common_dir: Path, blobs: Mapping[str, str]) -> frozenset[str]:
    """Those of the files that have the content of the pointer in their blob."""
    if not blobs or not is_used(common_dir):
        return frozenset()
    pointers = _pointers_of(common_dir, blobs.values())
    named = {path: found for path, blob in blobs.items() if (found := pointers[blob])}
    return frozenset(path for path, one in named.items() if _with_content(files, path, one))


def without_content(common_dir: Path, blobs: Mapping[str, str]) -> tuple[str, ...]:
    """Those of the files that are pointers to a content that the store lacks."""
    store, pointers = store_of(common_dir), _pointers_of(common_dir, blobs.values())
    named = ((path, pointers[blob]) for path, blob in blobs.items())
    return tuple(path for path, one in named if one is not None and not has_content(store, one))


# What is in commits -------------------------------------------------------------------------------


def take_in_contents(
    repo: Repository, agent_git: Path, commit: str, *, known: str | None
) -> tuple[str, ...]:
    """Store the contents that the commits of an agent bring, after their SHA-256 was checked.

    Answers the files of git-lfs in the commit that nobody could fill: their content is in no
    store, or git-lfs would read their text as a pointer and crew does not.
    """
    is_doubtful = keep_contents(repo, agent_git, commit, known=known)
    if is_doubtful is None:
        return ()
    if not is_doubtful and known and _has_same_attributes(repo, known, commit):
        return ()
    return _brought(repo, commit, known)


def keep_contents(
    repo: Repository, agent_git: Path, commit: str, *, known: str | None
) -> bool | None:
    """Store what an agent's commits bring, and whether something seems to lack its content.

    None if neither the agent nor the person has any content of git-lfs.
    """
    common = repo.common_dir
    theirs, store = store_of(agent_git), store_of(common)
    if not (os.path.isdir(theirs) or os.path.isdir(store)):  # noqa: PTH112 - after every step
        return None
    is_doubtful, room = False, min(LARGEST_TAKEN_IN, shutil.disk_usage(common).free // 2)
    taken = 0
    for content in _small_blobs(repo, commit, known):
        pointer = parse_pointer(content)
        if pointer is None:
            is_doubtful = is_doubtful or _is_like_a_pointer(content)
        elif not has_content(store, pointer):
            room -= pointer.size
            taken += 1
            is_allowed = room > 0 and taken <= MOST_TAKEN_IN
            is_doubtful |= not (is_allowed and _take(agent_git, store, pointer))
    return is_doubtful


def missing_in(repo: Repository, commit: str) -> tuple[str, ...]:
    """The files of a commit whose contents are not in the person's store."""
    return without_content(repo.common_dir, _lfs_blobs(repo, commit))


@frozen
class Unready:
    """Why no file of git-lfs can be filled here, and the command against that."""

    words: str
    fix: str


def unready(repo: Repository) -> Unready | None:
    if shutil.which("git-lfs") is None:
        return Unready(words="git-lfs is not installed", fix="install it, then: git lfs install")
    if lfs_wanted(repo.common_dir) is None:
        return Unready(words="git-lfs is not set up for you", fix="git lfs install --force")
    return None


def may_name(repo: Repository) -> bool:
    """Whether any attributes may be committed, as far as an index shows without git."""
    index = read_bytes(repo.common_dir / "index", most=_LARGEST_INDEX)
    return index is None or b".gitattributes" in index or index[7:8] == b"\x04"


def names(repo: Repository, commit: str) -> bool:
    """Whether the attributes of a commit give any file to git-lfs."""
    args = ("grep", "-q", "-E", r"filter=lfs\b", commit, "--", ":(glob)**/.gitattributes")
    return ask(repo.common_dir, *args).code == 0


def _brought(repo: Repository, commit: str, known: str | None) -> tuple[str, ...]:
    """The files of a commit that cannot be filled, without those of the person's own commits."""
    doubtful = _doubtful_in(repo, commit)
    if not doubtful:
        return ()
    before = _doubtful_in(repo, known) if known else {}
    left = {path: blob for path, blob in doubtful.items() if before.get(path) != blob}
    tips = [tip for tip in (*landed_commits(repo), commit_of(repo, "HEAD")) if tip]
    names = [f"{tip}:{path}" for tip in tips for path in left]
    stdin = b"".join(os.fsencode(name) + b"\0" for name in names)
    answer = ask(repo.common_dir, "cat-file", "--batch-check=%(objectname)", "-z", stdin=stdin)
    theirs = answer.out.decode("utf-8", "replace").split("\n") if names else []
    known_ones = {blob for blob in theirs if blob in left.values()}
    return tuple(path for path, blob in left.items() if blob not in known_ones)


def _doubtful_in(repo: Repository, commit: str) -> dict[str, str]:
    """The files of git-lfs in a commit that its checkout could not fill, and their blobs."""
    store, blobs = store_of(repo.common_dir), _lfs_blobs(repo, commit)
    small = dict(_small(repo.common_dir, blobs.values()))
    return {path: blob for path, blob in blobs.items() if _is_doubtful(store, small.get(blob))}


def _is_doubtful(store: Path, content: bytes | None) -> bool:
    if content is None:
        return False
    pointer = parse_pointer(content)
    if pointer is None:
        return _is_like_a_pointer(content)
    return not has_content(store, pointer)


def _is_like_a_pointer(content: bytes) -> bool:
    return _LIKE_A_POINTER.search(content[:_BEGINNING]) is not None


def _lfs_blobs(repo: Repository, commit: str) -> dict[str, str]:
    """The files that the attributes of a commit give to git-lfs, and their blobs."""
    listed = git(repo.common_dir, "ls-tree", "-r", "-z", "--full-tree", commit, timeout_s=_LONG_S)
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    blobs = {path: meta.split(" ") for meta, _, path in entries}
    files = {path: words[2] for path, words in blobs.items() if words[0] in _FILES}
    place = attributes_worktree(repo, commit)
    return {path: files[path] for path in _tracked_among(place, repo.common_dir, files)}


def _small_blobs(repo: Repository, commit: str, known: str | None) -> Iterator[bytes]:
    """The small blobs that an agent's commits bring: no person's branch has them."""
    without = ("--not", *([known] if known else ()), "--exclude=crew-*", "--branches")
    others = ("--remotes", "--glob=refs/crew/landed")
    args = ("rev-list", "--objects", "--no-object-names", "--filter-provided-objects", _SMALL_BLOBS)
    listed = git(repo.common_dir, *args, commit, *without, *others, timeout_s=_LONG_S)
    yield from (content for _, content in _small(repo.common_dir, listed.split()))


def _has_same_attributes(repo: Repository, one: str, other: str) -> bool:
    args = ("diff-tree", "-r", "--name-only", one, other, "--", ":(glob)**/.gitattributes")
    return not git(repo.common_dir, *args)


# Pointers, contents and files ---------------------------------------------------------------------


def _common(git_dir: Path) -> Path:
    return Path(os.path.normpath(common_dir_of(git_dir)))


def _listed(place: Path, git_dir: Path, index: Path) -> dict[str, tuple[str, str]]:
    """The files of git-lfs in an index: the mode and the blob of each."""
    env = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(place), "GIT_INDEX_FILE": str(index)}
    args = ("ls-files", "-z", "--stage", "--", ":(top,attr:filter=lfs)")
    answer = ask(place, *args, env=env, timeout_s=_LONG_S)
    entries = (entry.partition("\t") for entry in os.fsdecode(answer.out).split("\0") if entry)
    words = ((path, meta.split(" ")) for meta, _, path in entries)
    return {path: (mode, blob) for path, (mode, blob, n) in words if mode in _FILES and n == "0"}


def _tracked_among(place: Path, git_dir: Path, paths: Iterable[str]) -> tuple[str, ...]:
    """Those of the paths that the attributes of this place give to git-lfs."""
    env = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(place)}
    stdin = b"".join(os.fsencode(path) + b"\0" for path in paths)
    if not stdin:
        return ()
    answer = ask(place, "check-attr", "-z", "--stdin", "filter", stdin=stdin, env=env)
    fields = os.fsdecode(answer.out).split("\0")
    return tuple(
        path for path, value in zip(fields[::3], fields[2::3], strict=False) if value == "lfs"
    )


def _pointers_of(common_dir: Path, blobs: Iterable[str]) -> dict[str, Pointer | None]:
    wanted = {*blobs}
    unknown = [blob for blob in wanted if blob not in _pointers]
    if len(_pointers) + len(unknown) > _MOST_REMEMBERED * 10:
        _pointers.clear()
        unknown = [*wanted]
    if unknown:
        small = dict(_small(common_dir, unknown))
        _pointers.update({blob: parse_pointer(small.get(blob, b"")) for blob in unknown})
    return {blob: _pointers[blob] for blob in wanted}


def _small(common_dir: Path, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The contents of those blobs that are short enough for a pointer."""
    wanted = [*dict.fromkeys(blobs)]
    stdin = "".join(f"{blob}\n" for blob in wanted).encode()
    args = ("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
    sizes = git(common_dir, *args, stdin=stdin, timeout_s=_LONG_S) if wanted else ""
    lines = (line.split(" ") for line in sizes.splitlines())
    short = [words[0] for words in lines if words[1] == "blob" and int(words[2]) <= LONGEST_POINTER]
    for first in range(0, len(short), _AT_ONCE):
        stdin = "".join(f"{blob}\n" for blob in short[first : first + _AT_ONCE]).encode()
        rest = ask(common_dir, "cat-file", "--batch", stdin=stdin, timeout_s=_LONG_S).out
        while rest:
            header, _, rest = rest.partition(b"\n")
            blob, _, size = header.decode().split(" ")
            yield blob, rest[: int(size)]
            rest = rest[int(size) + 1 :]


def _stats(files: Path, paths: Iterable[str]) -> dict[str, os.stat_result]:
    """The numbers of those paths that are regular files, without a link on the way."""
    found = dict[str, os.stat_result]()
    for path in paths:
        with suppress(OSError), _opened(files, path) as handle:
            one = os.fstat(handle)
            if stat.S_ISREG(one.st_mode):
                found[path] = one
    return found


@contextmanager
def _opened(top: Path, path: str) -> Iterator[int]:
    """A file below a folder that others can write: no link is followed, and no pipe waited for."""
    handle = _open(top, path)
    try:
        yield handle
    finally:
        os.close(handle)


def _open(top: Path, path: str) -> int:
    with _folder_of(top, path) as folder:
        return os.open(path.rpartition("/")[2], _READ, dir_fd=folder)


@contextmanager
def _kept_in(git_dir: Path, pointer: Pointer) -> Iterator[int | None]:
    """The content in the store of this git dir, of the right size; None if it has none."""
    try:
        handle = _open(git_dir, f"lfs/objects/{_place_of(pointer.oid)}")
    except OSError:
        yield None
        return
    try:
        found = os.fstat(handle)
        yield handle if stat.S_ISREG(found.st_mode) and found.st_size == pointer.size else None
    finally:
        os.close(handle)


@contextmanager
def _folder_of(top: Path, path: str) -> Iterator[int]:
    folder = os.open(top, _TOP)
    try:
        for name in path.split("/")[:-1]:
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _is_pointer(file: Path, pointer: Pointer) -> bool:
    try:
        return parse_pointer(read_foreign(file, max_bytes=LONGEST_POINTER)) == pointer
    except (OSError, NotBelieved):
        return False


def _is_executable(found: os.stat_result) -> bool:
    return bool(found.st_mode & stat.S_IXUSR)


def _with_content(files: Path, path: str, pointer: Pointer) -> os.stat_result | None:
    """The numbers of the file, if it has this content."""
    one = _stats(files, (path,)).get(path)
    if one is None or one.st_size != pointer.size or _sha256_of(files, path) != pointer.oid:
        return None
    now = _stats(files, (path,)).get(path)
    return one if now is not None and stamp_of(now) == stamp_of(one) else None


def _sha256_of(files: Path, path: str) -> str | None:
    """The SHA-256 of a regular file; it is read again only if its numbers changed."""
    name = f"{files}/{path}"
    try:
        with _opened(files, path) as handle:
            before = os.fstat(handle)
            if not stat.S_ISREG(before.st_mode):
                return None
            stamp, known = _hashed.get(name, ((), ""))
            if stamp == stamp_of(before):
                return known
            oid, _ = _read_through(handle)
    except OSError:
        return None
    if is_settled(before):
        if len(_hashed) >= _MOST_REMEMBERED:
            _hashed.clear()
        _hashed[name] = (stamp_of(before), oid)
    return oid


def _read_through(
    source: int, write: Callable[[bytes], object] | None = None, *, most: int | None = None
) -> tuple[str, int]:
    """The SHA-256 and the size of what is read, and perhaps written; not much more than `most`."""
    import hashlib  # noqa: PLC0415 - slow to load

    digest, size = hashlib.sha256(), 0
    while (most is None or size <= most) and (block := os.read(source, _BLOCK)):
        digest.update(block)
        size += len(block)
        if write is not None:
            write(block)
    return digest.hexdigest(), size


def _copied(source: int, target: IO[bytes], pointer: Pointer) -> bool:
    """Copy a content, on file systems that can without its blocks; whether it is the right one."""
    try:
        fcntl.ioctl(target.fileno(), _FICLONE, source)
    except OSError:
        read = _read_through(source, target.write, most=pointer.size)
        target.flush()
    else:
        read = _read_through(target.fileno(), most=pointer.size)
    return read == (pointer.oid, pointer.size)


def _filled(
    files: Path, path: str, source: _Source, pointer: Pointer, *, mode: str
) -> os.stat_result | None:
    """Replace a pointer by its content; None if no store has exactly that."""
    for home in source.stores:
        with _kept_in(home, pointer) as kept:
            if kept is not None:
                return _fill(files, path, kept, pointer, mode=mode, at_ns=source.at_ns)
    return None


@effect("git.fill_lfs")
def _fill(
    files: Path, path: str, kept: int, pointer: Pointer, *, mode: str, at_ns: int
) -> os.stat_result | None:
    """Write the content next to the file and put it in place; None if it is not the right one.

    The file is dated before the index, or git would compare its content each time.
    """
    name = path.rpartition("/")[2]
    bits, times = 0o777 if mode == "100755" else 0o666, (at_ns - _OLDER_NS,) * 2
    with _folder_of(files, path) as folder:
        fresh = _free_name(folder, pointer)
        try:
            with open(os.open(fresh, _NEW, bits, dir_fd=folder), "w+b") as file:  # noqa: PTH123
                is_right = _copied(kept, file, pointer)
                os.utime(file.fileno(), ns=times)
            if not is_right:
                return None
            put_in_place(fresh, name, within=folder)
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)


def _free_name(folder: int, pointer: Pointer) -> str:
    """The name of an unfinished file, the same at a repeat, so that a kill leaves none behind."""
    fresh = f".crew-lfs-{pointer.oid[:16]}"
    try:
        os.unlink(fresh, dir_fd=folder)
    except FileNotFoundError:
        return fresh
    except OSError:  # a folder that an agent made
        return f"{fresh}-{uuid.uuid4().hex}"
    return fresh


@effect("git.note_lfs")
def _rewrite(index: Path, content: bytes, *, at_ns: int) -> None:
    """Replace an index; its date stays, since of other files it says as much as before."""
    fresh = index.with_name(f"{index.name}.crew-lfs")
    write_file(fresh, content, mode=stat.S_IMODE(index.stat().st_mode))
    os.utime(fresh, ns=(at_ns, at_ns))
    put_in_place(fresh, index)


@effect("git.take_in_lfs")
def _take(agent_git: Path, store: Path, pointer: Pointer) -> bool:
    """Copy a content from an agent's store into the person's; false if it has not exactly that."""
    target = _file_in(store, pointer.oid)
    making = store.parent / "tmp" / f"crew-{uuid.uuid4().hex}"
    with _kept_in(agent_git, pointer) as kept:
        if kept is None:
            return False
        making.parent.mkdir(parents=True, exist_ok=True)
        try:
            with making.open("x+b") as file:
                is_right = _copied(kept, file, pointer)
            if is_right:
                sync_to_disk(making)
                target.parent.mkdir(parents=True, exist_ok=True)
                put_in_place(making, target)
            return is_right
        finally:
            making.unlink(missing_ok=True)


def _place_of(oid: str) -> str:
    return f"{oid[:2]}/{oid[2:4]}/{oid}"


def _file_in(store: Path, oid: str) -> Path:
    return store / _place_of(oid)


def _is_chosen(files: Path) -> bool:
    """Whether the repository's own settings of git-lfs leave out some contents."""
    found = read_bytes(files / ".lfsconfig", most=1_000_000)
    return found is not None and _CHOOSES.search(found) is not None
