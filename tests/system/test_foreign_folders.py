"""A write below a folder that others change at any moment never leaves that folder."""

import os

import pytest

from crew.system import foreign_folders
from crew.system.foreign_folders import write_below


@pytest.fixture
def top(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "main").write_text("mine\n")
    top = tmp_path / "top"
    (top / "refs" / "heads").mkdir(parents=True)
    return top


def outside(top):
    return {path.name: path.read_text() for path in (top.parent / "outside").iterdir()}


def swap(folder):
    """What an agent's program does between two calls of crew."""
    folder.rename(folder.with_name("aside"))
    folder.symlink_to(folder.parents[len(folder.parts) - 1 - folder.parts.index("top")] / "outside")


@pytest.mark.parametrize("clears_way", [False, True])
@pytest.mark.parametrize("name", ["refs", "refs/heads"])
@pytest.mark.parametrize("at", ["before open", "after open", "before replace", "after replace"])
def test_a_folder_that_becomes_a_link_at_any_moment_is_not_written_through(
    top, monkeypatch, name, at, clears_way
):
    moment, call = at.split()
    real, last = getattr(os, call), name.rpartition("/")[2]
    left = [top / name]

    def swapped(path, *args, **more):
        is_it = bool(left) and (call == "replace" or os.fspath(path) == last)
        if is_it and moment == "before":
            swap(left.pop())
        try:
            return real(path, *args, **more)
        finally:
            if is_it and moment == "after":
                swap(left.pop())

    monkeypatch.setattr(foreign_folders.os, call, swapped)
    write_below(top, "refs/heads/main", b"new\n", clears_way=clears_way)
    monkeypatch.undo()
    assert left == []
    assert outside(top) == {"main": "mine\n"}


def test_missing_folders_are_made_and_nothing_unfinished_stays(top):
    assert write_below(top, "refs/heads/deep/er/one", b"new\n")
    assert write_below(top, "refs/heads/deep/er/one", b"newer\n")
    folder = top / "refs" / "heads" / "deep" / "er"
    assert [path.read_bytes() for path in folder.iterdir()] == [b"newer\n"]
    assert not (folder / "one").stat().st_mode & 0o111


def put_link(place):
    place.symlink_to(place.parents[1] / "outside")


def put_dangling_link(place):
    place.symlink_to("nothing")


def put_file(place):
    place.write_text("x")


@pytest.mark.parametrize("put", [put_link, put_dangling_link, put_file])
def test_what_is_in_the_place_of_a_folder_stays_or_is_cleared_away(top, put):
    put(top / "info")
    before = (top / "info").lstat()
    assert not write_below(top, "info/exclude", b"new\n")
    assert (top / "info").lstat() == before
    assert write_below(top, "info/exclude", b"new\n", clears_way=True)
    assert (top / "info" / "exclude").read_bytes() == b"new\n"
    assert outside(top) == {"main": "mine\n"}


def test_a_folder_in_the_place_of_the_file_stays_or_is_set_aside(top):
    (top / "refs" / "heads" / "main").mkdir()
    (top / "refs" / "heads" / "main" / "work").write_text("hours\n")
    assert not write_below(top, "refs/heads/main", b"new\n")
    assert [path.name for path in (top / "refs" / "heads").iterdir()] == ["main"]
    assert write_below(top, "refs/heads/main", b"new\n", clears_way=True)
    assert (top / "refs" / "heads" / "main").read_bytes() == b"new\n"
    assert [path.read_text() for path in top.glob("refs/heads/main.set-aside-*/work")] == [
        "hours\n"
    ]


def test_a_link_in_the_place_of_the_file_is_replaced(top):
    (top / "main").symlink_to(top.parent / "outside" / "main")
    assert write_below(top, "main", b"new\n")
    assert not (top / "main").is_symlink()
    assert outside(top) == {"main": "mine\n"}


def test_without_the_folder_itself_nothing_is_made(top):
    for name in ("missing", "link"):
        (top / "link").unlink(missing_ok=True)
        (top / "link").symlink_to(top.parent / "outside")
        assert not write_below(top / name, "new", b"new\n", clears_way=True)
    assert not (top / "missing").exists()
    assert outside(top) == {"main": "mine\n"}


def test_a_full_disk_is_told_and_leaves_nothing_unfinished(top, monkeypatch):
    def full(*_args, **_more):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(foreign_folders.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_below(top, "main", b"new\n")
    assert [path.name for path in top.iterdir()] == ["refs"]
