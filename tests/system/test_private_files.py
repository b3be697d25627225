"""Private files: their modes do not depend on the umask, and what is not a file is replaced."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from crew.system.private_files import (
    append_private,
    close_to_others,
    ensure_pipe,
    exposed,
    make_private_folder,
    open_pipe,
)


@pytest.fixture(params=[0o000, 0o777])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def test_files_and_folders_have_their_modes_under_any_umask(tmp_path, umask):
    make_private_folder(tmp_path / "a" / "b")
    append_private(tmp_path / "a" / "b" / "log", b"one\n")
    append_private(tmp_path / "a" / "b" / "log", b"two\n")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a").rglob("*")}
    assert modes == {"b": 0o700, "log": 0o600}
    assert (tmp_path / "a" / "b" / "log").read_bytes() == b"one\ntwo\n"


def test_what_is_open_is_found_and_closed_besides_the_shared_entries(tmp_path):
    tmp_path.chmod(0o700)
    for name in ("tasks", "logs"):
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name / "file").write_text("")
        (tmp_path / name / "file").chmod(0o755)
    shared = frozenset({"tasks"})
    assert set(exposed(tmp_path, besides=shared)) == {tmp_path / "logs", tmp_path / "logs/file"}
    close_to_others(tmp_path, besides=shared)
    assert not list(exposed(tmp_path, besides=shared))
    assert stat.S_IMODE((tmp_path / "logs/file").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "tasks/file").stat().st_mode) == 0o755


def test_a_link_to_a_file_of_others_is_not_followed_to_change_its_mode(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    folder = tmp_path / "own"
    make_private_folder(folder)
    (folder / "link").symlink_to(outside)
    close_to_others(folder, besides=frozenset())
    assert stat.S_IMODE(outside.stat().st_mode) == 0o644


def test_a_device_is_used_and_not_replaced():
    before = os.lstat(os.devnull)
    append_private(Path(os.devnull), b"into nothing")
    after = os.lstat(os.devnull)
    assert (after.st_ino, after.st_mode) == (before.st_ino, before.st_mode)


@pytest.mark.parametrize("what", ["file", "folder", "link", "nothing", "pipe"])
def test_a_pipe_is_made_where_something_else_is(tmp_path, what):
    pipe = tmp_path / "wake"
    if what == "file":
        pipe.write_text("not a pipe")
    elif what == "folder":
        (pipe / "full").mkdir(parents=True)
    elif what == "link":
        pipe.symlink_to(tmp_path / "nowhere")
    elif what == "pipe":
        ensure_pipe(pipe)
    os.close(open_pipe(pipe))
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("point", ["files.set_aside.before", "files.set_aside.after"])
def test_a_kill_while_something_is_set_aside_loses_nothing(tmp_path, point):
    pipe = tmp_path / "wake"
    pipe.write_text("kept")
    code = "import sys, pathlib; from crew.system.private_files import ensure_pipe;"
    code += "ensure_pipe(pathlib.Path(sys.argv[1]))"
    argv = [sys.executable, "-c", code, pipe]
    for env in ({**os.environ, "CREW_CRASH_AT": point}, os.environ):
        ended = subprocess.run(argv, env=env, check=False).returncode
    assert ended == 0
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert [path.read_text() for path in tmp_path.iterdir() if path != pipe] == ["kept"]
