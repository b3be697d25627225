"""A folder of gates is as good as new before each gate, whatever the code of the last one left."""

import os
import stat
from pathlib import Path

import pytest

from crew.git import git_command
from crew.git.gate_folders import clean_folder
from crew.git.gate_folders.clean_folder import untracked_in
from crew.git.repository import commit_of
from crew.git.worktrees import index_file
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_detached
from git.conftest import agents_git_dir
from git.people import Person


@pytest.fixture(params=["few files", "many files"])
def gate(request, repo, tmp_path, kind, monkeypatch) -> Path:
    """A folder of gates. Of many files, git lists those of the index."""
    if request.param == "many files":
        monkeypatch.setattr(index_file, "MOST_FILES", 2)
    path = tmp_path / "trees" / "gate"
    ensure_detached(repo, path, "main", kind=kind)
    return path


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """A git that waits for a pipe fails soon."""
    once = git_command._run_once
    monkeypatch.setattr(
        git_command, "_run_once", lambda *a, timeout_s, **k: once(*a, timeout_s=5, **k)
    )


def all_below(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Each file and folder with its mode and content, but for the index and the pointer."""
    found = {"": (stat.S_IMODE(folder.stat().st_mode), b"")}
    for path in folder.rglob("*"):
        mode, is_file = stat.S_IMODE(path.lstat().st_mode), path.is_file()
        found[str(path.relative_to(folder))] = (mode, path.read_bytes() if is_file else b"")
    return {name: one for name, one in found.items() if name not in {".git", "index"}}


def assert_as_new(repo, gate, kind):
    fresh = gate.with_name("fresh")
    ensure_detached(repo, fresh, "main", kind=kind)
    assert all_below(gate) == all_below(fresh)
    if kind == "own":
        now, new = agents_git_dir(repo, gate), agents_git_dir(repo, fresh)
        assert all_below(now) == all_below(new)
    assert Person(gate).git("status", "--porcelain", "--ignored") == ""


def empty_folders(gate):
    (gate / "left" / "inside").mkdir(parents=True)
    (gate / "sub" / "left").mkdir()


def a_git_folder_in_a_tracked_one(gate):
    Person(gate).write("sub/.git/left", "x")


def a_git_file_in_a_tracked_one(gate):
    Person(gate).write("sub/.git", "x")


def a_folder_in_place_of_a_file(gate):
    (gate / "a.txt").unlink()
    Person(gate).write("a.txt/left", "x")


def a_file_in_place_of_a_folder(gate):
    (gate / "sub" / "c.txt").unlink()
    (gate / "sub").rmdir()
    Person(gate).write("sub", "x")


def a_link_in_place_of_a_folder(gate):
    (gate.parent / "elsewhere").mkdir()
    (gate / "sub").rename(gate.parent / "elsewhere" / "sub")
    (gate / "sub").symlink_to(gate.parent / "elsewhere" / "sub")


def a_link_to_a_pipe_in_place_of_a_file(gate):
    os.mkfifo(gate.parent / "pipe")
    (gate / "a.txt").unlink()
    (gate / "a.txt").symlink_to(gate.parent / "pipe")


def pipes(gate):
    for name in ("pipe", ".gitignore", "sub/.gitattributes", "sub/.git"):
        os.mkfifo(gate / name)


def open_modes(gate):
    for folder in (gate / "sub", gate):
        folder.chmod(0o777)


def closed_modes(gate):
    (gate / "b.txt").chmod(0o444)
    for folder in (gate / "sub", gate):
        folder.chmod(0o500)


def marked_modes(gate):
    (gate / "sub").chmod(0o3755)
    (gate / "a.txt").chmod(0o600)


def a_closed_folder_with_files(gate):
    Person(gate).write("left/inner/x", "x")
    (gate / "left" / "inner").chmod(0)
    (gate / "left").chmod(0)


LEFT = [
    empty_folders,
    a_git_folder_in_a_tracked_one,
    a_git_file_in_a_tracked_one,
    a_folder_in_place_of_a_file,
    a_file_in_place_of_a_folder,
    a_link_in_place_of_a_folder,
    a_link_to_a_pipe_in_place_of_a_file,
    pipes,
    open_modes,
    closed_modes,
    marked_modes,
    a_closed_folder_with_files,
]


@pytest.mark.parametrize("leave", LEFT)
def test_what_a_gate_left_in_its_folder_is_gone_at_the_next(repo, gate, kind, leave):
    leave(gate)
    ensure_detached(repo, gate, "main", kind=kind)
    assert_as_new(repo, gate, kind)


def test_files_that_no_gate_changed_stay_the_same_files(repo, person, gate, kind):
    """So caches that compare times stay valid."""
    person.write("run.sh", "true\n").chmod(0o755)
    person.commit({}, "a program")
    ensure_detached(repo, gate, "main", kind=kind)
    names = ("a.txt", "b.txt", "sub", "sub/c.txt", "run.sh")
    before = [(gate / name).stat() for name in names]
    ensure_detached(repo, gate, "main", kind=kind)
    after = [(gate / name).stat() for name in names]
    assert [(one.st_ino, one.st_ctime_ns) for one in before] == [
        (one.st_ino, one.st_ctime_ns) for one in after
    ]


def test_a_repository_that_a_gate_makes_in_place_of_its_own_is_kept_nowhere(repo, tmp_path):
    gate = tmp_path / "trees" / "gate"
    ensure_detached(repo, gate, "main")
    before = set(git_dir_for(repo, gate).iterdir())
    (gate / ".git").unlink()
    inner = Person(gate)
    inner.git("init", "-q")
    inner.commit({"x.txt": "x\n"})
    ensure_detached(repo, gate, "main")
    assert set(git_dir_for(repo, gate).iterdir()) == before
    assert_as_new(repo, gate, "own")


@pytest.mark.parametrize("name", ["HEAD", "commondir"])
@pytest.mark.parametrize("is_file", [False, True])
def test_git_does_not_wait_for_a_pipe_of_a_repository_that_a_gate_left(
    repo, gate, kind, name, is_file
):
    """Its `.git` may also name a git dir elsewhere."""
    elsewhere = gate.parent / "elsewhere"
    Person(gate).write("n/work.txt", "x")
    Person(gate / "n").git("init", "-q")
    git_dir = gate / "n" / ".git"
    if is_file:
        git_dir.rename(elsewhere)
        git_dir.write_text(f"gitdir: {elsewhere}\n")
        git_dir = elsewhere
    (git_dir / name).unlink(missing_ok=True)
    os.mkfifo(git_dir / name)
    assert untracked_in(gate, git_dir_for(repo, gate)) == ("n",)
    ensure_detached(repo, gate, "main", kind=kind)
    assert_as_new(repo, gate, kind)


@pytest.mark.parametrize("kind", ["own"])
def test_modes_in_the_repository_of_a_gate_are_those_of_a_new_one(repo, gate, kind):
    git_dir = agents_git_dir(repo, gate)
    (git_dir / "config").chmod(0o400)
    for folder in (git_dir / "refs" / "heads", git_dir / "objects", git_dir):
        folder.chmod(0o555)
    ensure_detached(repo, gate, "main", kind=kind)
    assert_as_new(repo, gate, kind)


@pytest.mark.parametrize("kind", ["own"])
@pytest.mark.parametrize("name", ["user.left", "system.posix_acl_default"])
def test_attributes_of_folders_and_of_files_of_the_repository_are_gone(repo, gate, kind, name):
    git_dir = agents_git_dir(repo, gate)
    places = [gate, gate / "sub", gate / "a.txt", git_dir, git_dir / "config"]
    # Whoever makes a file there may do nothing with it.
    closed = bytes.fromhex("02000000" + "".join(f"{tag:02x}000000ffffffff" for tag in (1, 4, 32)))
    try:
        for place in places:
            if place.is_dir() or name == "user.left":
                os.setxattr(place, name, closed)
    except (AttributeError, OSError):
        pytest.skip("this file system has no such attributes")
    ensure_detached(repo, gate, "main", kind=kind)
    assert [name for place in places for name in os.listxattr(place)] == []
    assert_as_new(repo, gate, kind)


def test_an_access_list_that_folders_inherit_stays(repo, gate, kind):
    """Its modes, which say more than a umask, stay too."""
    lists = "".join(f"{tag:02x}000700ffffffff" for tag in (1, 4, 32))
    try:
        os.setxattr(gate.parent, "system.posix_acl_default", bytes.fromhex(f"02000000{lists}"))
    except (AttributeError, OSError):
        pytest.skip("this file system has no access lists")
    inheriting = gate.with_name("inheriting")
    for _ in range(2):
        ensure_detached(repo, inheriting, "main", kind=kind)
        assert "system.posix_acl_default" in os.listxattr(inheriting / "sub")
        modes = [stat.S_IMODE((inheriting / name).stat().st_mode) for name in ("sub", "a.txt")]
        assert modes == [0o777, 0o666]


@pytest.mark.parametrize(
    ("keep", "stays"),
    [
        (("cache/",), {"cache/x", "cache/deep/y.tmp", "sub/cache/z"}),
        (("/cache",), {"cache/x", "cache/deep/y.tmp"}),
        (("*.tmp",), {"cache/deep/y.tmp", "sub/left.tmp"}),
        (("cache", "!cache"), set()),
        (("sub",), {"sub/cache/z", "sub/left.tmp"}),
        ((), set()),
    ],
)
def test_only_what_keep_names_stays(repo, gate, kind, keep, stays):
    listed = set(Person(gate).tree())
    for name in ("cache/x", "cache/deep/y.tmp", "sub/cache/z", "sub/left.tmp", "left/x"):
        Person(gate).write(name, "x")
    (gate / "left" / "empty").mkdir()
    os.mkfifo(gate / "pipe.tmp")
    (gate / "cache" / "deep").chmod(0o700)
    ensure_detached(repo, gate, "main", kind=kind, keep=keep)
    assert set(Person(gate).tree()) == listed | stays
    assert not (gate / "left").exists()
    assert not (gate / "pipe.tmp").exists()
    assert {*untracked_in(gate, git_dir_for(repo, gate))} == set(_tops(stays, listed))


def _tops(paths, listed):
    """The paths themselves, or their first folders in which nothing is tracked."""
    for path in paths:
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
        yield next(one for one in above if not any(name.startswith(f"{one}/") for name in listed))


@pytest.mark.parametrize("keep", [(), ("inner",)])
def test_the_files_of_a_submodule_are_what_a_gate_made(repo, person, gate, kind, keep):
    """Git would leave them all, and wait for a pipe in the submodule's repository."""
    added = commit_of(repo, "main")
    person.git("update-index", "--add", "--cacheinfo", f"160000,{added},inner")
    person.git("commit", "-q", "-m", "submodule")
    ensure_detached(repo, gate, "main", kind=kind)
    Person(gate).write("inner/x", "x")
    Person(gate / "inner").git("init", "-q")
    (gate / "inner" / ".git" / "HEAD").unlink()
    os.mkfifo(gate / "inner" / ".git" / "HEAD")
    assert {*untracked_in(gate, git_dir_for(repo, gate))} == {"inner/.git", "inner/x"}
    ensure_detached(repo, gate, "main", kind=kind, keep=keep)
    assert [path.name for path in (gate / "inner").iterdir()] == (["x"] if keep else [])
    ensure_detached(repo, gate, "main", kind=kind)
    assert_as_new(repo, gate, kind)


def test_files_outside_a_sparse_checkout_are_what_a_gate_made(repo, person, tmp_path, gate, kind):
    del gate
    person.git("sparse-checkout", "set", "--no-cone", "/*", "!/sub/")
    path = tmp_path / "trees" / "sparse"
    ensure_detached(repo, path, "main", kind=kind)
    had = (path / "sub").exists()
    Person(path).write("sub/c.txt", "other\n")
    ensure_detached(repo, path, "main", kind=kind)
    content = (path / "sub" / "c.txt").read_text() if had else ""
    assert (content, (path / "sub").exists()) == ("c\n" if had else "", had)


def test_what_cannot_be_deleted_is_an_error(repo, gate, kind, monkeypatch):
    Person(gate).write("left/x", "x")
    monkeypatch.setattr(clean_folder, "remove", lambda _path: None)
    with pytest.raises(OSError, match="left"):
        ensure_detached(repo, gate, "main", kind=kind)
