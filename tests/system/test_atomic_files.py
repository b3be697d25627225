"""Tests of files that are put in place in one move: content, mode, links, errors."""

import os
import stat
from pathlib import Path

import pytest

from crew.system.atomic_files import (
    claim_file,
    has_content,
    rewrite_file,
    write_file,
    write_together,
)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755])
def test_a_file_is_written_with_the_mode_that_was_asked_for(tmp_path, mode):
    write_file(tmp_path / "a", b"new", mode=mode)
    assert (tmp_path / "a").read_bytes() == b"new"
    assert mode_of(tmp_path / "a") == mode
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_file_without_a_mode_gets_the_usual_one(tmp_path):
    (tmp_path / "usual").touch()
    write_file(tmp_path / "a", b"")
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "usual")


def test_a_reader_keeps_the_old_file(tmp_path):
    path = tmp_path / "a"
    write_file(path, b"old")
    with path.open("rb") as reading:
        write_file(path, b"new")
        assert reading.read() == b"old"
    assert has_content(path, b"new")


def test_a_durable_file_is_on_the_disk_before_it_is_in_place(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("on the disk"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b, **_: (done.append("in place"), replace(a, b)))
    write_file(tmp_path / "a", b"", is_durable=True)
    write_file(tmp_path / "a", b"")
    assert done == ["on the disk", "in place", "in place"]


def test_files_are_all_on_the_disk_before_the_first_is_in_place(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (done.append("disk"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda a, b, **_: (done.append(Path(b).name), replace(a, b)))
    files = {str(tmp_path / "a"): b"1", str(tmp_path / "b"): b"2"}
    write_together(files, mode=0o444, unfinished="new-")
    assert done == ["disk", "disk", "a", "b"]
    assert {str(path): path.read_bytes() for path in tmp_path.iterdir()} == files
    assert mode_of(tmp_path / "a") == 0o444


def test_a_lock_is_complete_and_belongs_to_one(tmp_path, monkeypatch):
    assert claim_file(str(tmp_path / "lock"), b"first")
    assert not claim_file(str(tmp_path / "lock"), b"second")
    assert has_content(tmp_path / "lock", b"first")

    def full(_handle):
        raise OSError(28, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        claim_file(str(tmp_path / "other"), b"third")
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_file(tmp_path / "a", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_writer_left_is_written_over(tmp_path):
    left = tmp_path / "a.tmp"
    left.write_bytes(b"half of it")
    write_file(tmp_path / "a", b"new", unfinished=left)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_the_file_of_a_person_keeps_its_link_and_its_mode(tmp_path):
    kept = tmp_path / "kept"
    kept.write_bytes(b"old")
    kept.chmod(0o640)
    (tmp_path / "link").symlink_to(kept)
    rewrite_file(tmp_path / "link", b"new", mode=0o600)
    assert (tmp_path / "link").is_symlink()
    assert (kept.read_bytes(), mode_of(kept)) == (b"new", 0o640)


def test_the_file_of_a_person_that_is_not_there_yet_gets_the_mode(tmp_path):
    rewrite_file(tmp_path / "a", b"", mode=0o600)
    assert mode_of(tmp_path / "a") == 0o600
