"""A file that others can write is checked before a byte of it is believed."""

import os
import socket
from pathlib import Path

import pytest

from crew.system import foreign_files
from crew.system.foreign_files import NotBelieved, open_foreign, read_foreign

LONG_AGO_S = 1_000_000_000


@pytest.fixture
def reads(monkeypatch):
    """The paths that were opened."""
    opened: list[str] = []
    real = os.open

    def noted(path, *args, **kwargs):
        opened.append(os.fspath(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", noted)
    return opened


@pytest.fixture
def settled(monkeypatch):
    """The clock of the reader is an hour ahead, so that no file is young."""
    real = foreign_files.time.time_ns
    monkeypatch.setattr(foreign_files.time, "time_ns", lambda: real() + 3600 * 10**9)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


OTHERS = {
    "a folder": lambda path: path.mkdir(),
    "a folder that cannot be read": lambda path: path.mkdir(mode=0),
    "a named pipe": os.mkfifo,
    "a link": lambda path: path.symlink_to(os.devnull),
    "a link to nothing": lambda path: path.symlink_to("missing"),
    "a socket": _socket,
}


@pytest.mark.parametrize("kind", OTHERS)
def test_only_a_regular_file_is_believed(kind, tmp_path):
    OTHERS[kind](tmp_path / "file")
    for read in (lambda path: read_foreign(path, max_bytes=100), open_foreign):
        with pytest.raises(NotBelieved, match=f"is {kind[:6]}"):
            read(tmp_path / "file")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_foreign(tmp_path / "file", max_bytes=100)


def test_a_file_above_its_limit_is_not_believed(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 101)
    with pytest.raises(NotBelieved):
        read_foreign(tmp_path / "file", max_bytes=100)


def test_a_file_that_stays_as_it_is_is_read_once(tmp_path, reads, settled):
    (tmp_path / "file").write_bytes(b"same")
    assert [read_foreign(tmp_path / "file", max_bytes=100) for _ in range(3)] == [b"same"] * 3
    assert reads.count(str(tmp_path / "file")) == 1


def test_a_young_file_is_read_each_time(tmp_path, reads, monkeypatch):
    """Two changes in one tick of the clock leave the same numbers."""
    monkeypatch.setattr(foreign_files.time, "time_ns", lambda: 0)
    (tmp_path / "file").write_bytes(b"same")
    assert [read_foreign(tmp_path / "file", max_bytes=100) for _ in range(3)] == [b"same"] * 3
    assert reads.count(str(tmp_path / "file")) == 3


def _await_next_tick(file: Path) -> None:
    """Wait until a change of the file would have another time."""
    probe, before = file.with_name("probe"), file.stat().st_ctime_ns
    probe.touch()
    while probe.stat().st_ctime_ns <= before:
        probe.touch()


def _in_place(path: Path) -> None:
    path.write_bytes(b"two")
    os.utime(path, (LONG_AGO_S, LONG_AGO_S))


def _replaced(path: Path) -> None:
    fresh = path.with_name("fresh")
    fresh.write_bytes(b"two")
    os.utime(fresh, (LONG_AGO_S, LONG_AGO_S))
    fresh.replace(path)


@pytest.mark.parametrize("change", [_in_place, _replaced])
def test_a_change_of_the_same_size_with_the_old_date_is_seen(change, tmp_path, settled):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))
    assert read_foreign(file, max_bytes=100) == b"one"
    _await_next_tick(file)
    change(file)
    assert read_foreign(file, max_bytes=100) == b"two"


def test_a_remembered_file_that_became_a_link_is_not_believed(tmp_path, settled):
    file = tmp_path / "file"
    file.write_bytes(b"one")
    assert read_foreign(file, max_bytes=100) == b"one"
    file.rename(tmp_path / "moved")
    file.symlink_to("moved")
    with pytest.raises(NotBelieved):
        read_foreign(file, max_bytes=100)


def test_a_remembered_file_is_measured_against_the_limit_of_each_read(tmp_path, settled):
    (tmp_path / "file").write_bytes(b"x" * 50)
    assert read_foreign(tmp_path / "file", max_bytes=100)
    with pytest.raises(NotBelieved):
        read_foreign(tmp_path / "file", max_bytes=49)


def test_a_remembered_file_of_another_user_does_not_count_as_own(tmp_path, settled, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(b"secret")
    monkeypatch.setattr(foreign_files, "_is_strangers", lambda _found: True)
    assert read_foreign(file, max_bytes=100) == b"secret"
    with pytest.raises(NotBelieved):
        read_foreign(file, max_bytes=100, is_own=True)


def test_no_more_than_a_few_thousand_files_are_remembered(tmp_path, settled, monkeypatch):
    monkeypatch.setattr(foreign_files, "_MOST_REMEMBERED", 3)
    monkeypatch.setattr(foreign_files, "_remembered", {})
    for number in range(7):
        (tmp_path / str(number)).write_bytes(b"x")
        read_foreign(tmp_path / str(number), max_bytes=100)
    assert len(foreign_files._remembered) <= 3
