"""What holds for every command: streams, codes, colours, and how little it takes to start."""

import importlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from crew.front.cli import exit_codes
from crew.front.cli.call import Call
from crew.front.cli.catalogue import ALIASES, COMMANDS, LATER
from crew.front.cli.command_shape import CrewCommand, CrewGroup
from crew.front.cli.main import run
from crew.front.cli.output import cut, line, table_lines, text_width
from crew.front.cli.root import root
from front.conftest import CREW, PATIENCE_S, until

HEAVY = ("asyncio", "textual", "starlette", "mcp", "pydantic", "rich", "subprocess", "difflib")


def _load(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name].target.partition(":")
    return getattr(importlib.import_module(f"crew.front.cli.{module}"), attribute)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example_and_the_same_first_line(name):
    found = _load(name)
    assert found.name == name
    assert found.help is not None
    assert found.help.strip().splitlines()[0] == COMMANDS[name].help
    below = found.commands.values() if isinstance(found, click.Group) else []
    for one in (found, *below):
        assert isinstance(one, CrewCommand | CrewGroup)
        shown = CliRunner().invoke(one, ["--help"], obj=Call())
        assert shown.exit_code == 0
        assert "Example:\n  crew " in shown.output or "Example:\n  eval" in shown.output
        assert "--json" in shown.output
        assert "-h, --help" in shown.output


def test_help_lists_every_command(scene):
    out = scene.ok("--help").out
    assert all(f"  {name} " in out for name in COMMANDS)
    assert scene.ok("list", "-h").out.startswith("Usage: crew list")
    assert set(ALIASES.values()) <= set(COMMANDS)


def test_the_installed_command_and_the_module_are_the_same(scene):
    version = tomllib.loads('v = "0.1.0"')["v"]
    assert scene.ok("--version").out == f"crew {version}\n"
    done = subprocess.run(
        [sys.executable, "-m", "crew", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"crew {version}\n"


def test_without_a_command_the_help_is_shown_and_it_is_a_usage_error(scene):
    said = scene.crew()
    assert (said.code, said.out) == (2, "")
    assert "Usage: crew" in said.err
    assert scene.crew("--json").json["error"]["code"] == "usage"


def test_a_mistyped_command_is_answered_with_the_nearest_one(scene):
    said = scene.crew("lits")
    assert said.code == 2
    assert said.err == "crew: there is no command 'lits'\nhint: did you mean `crew list`?\n"
    assert scene.crew("lits", "--json").json["error"]["hint"] == "did you mean `crew list`?"


def test_flags_may_stand_before_or_after_the_command(scene):
    assert scene.ok("--json", "ps").out == scene.ok("ps", "--json").out == "[]\n"
    assert scene.ok("-q", "ps").err == scene.ok("ps", "-q").err == ""
    assert scene.crew("ps", "--jason").code == 2


def what_it_takes(scene, *args):
    """The exit code of a command in a fresh interpreter, what it loaded, how often it ran git."""
    code = (
        "import json, os, sys\n"
        "started = []\n"
        "def hear(event, args):\n"
        "    if event in ('os.posix_spawn', 'os.fork', 'os.exec', 'subprocess.Popen'):\n"
        "        started.append(event)\n"
        "sys.addaudithook(hear)\n"
        "from crew.front.cli.main import run\n"
        f"code = run({args!r})\n"
        "print(json.dumps([code, sorted(sys.modules), len(started)]), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=scene.root, capture_output=True, text=True, check=False
    )
    code, modules, processes = json.loads(done.stderr.splitlines()[-1])
    return code, set(modules), processes


@pytest.mark.parametrize("args", [["--help"], ["ps"], ["ps", "--json"], ["events"], ["--version"]])
def test_the_light_commands_import_nothing_heavy(scene, args):
    code, modules, processes = what_it_takes(scene, *args)
    assert (code, modules & set(HEAVY), processes) == (0, set(), 0)


RUNNER = {"asyncio", "crew.runner.runner", "crew.runner.engine", "crew.agents.adapter"}
SLOW = {
    "hashlib",
    "logging",
    "random",
    "secrets",
    "socket",
    "tempfile",
    "crew.git.checkpoints.checkpoints",
}
"""Each takes milliseconds to load, and is for what these commands do not do."""

SHORT = {
    "list": 0,
    "new --title x": 1,
    "edit 1 --title y --label z": 0,
    "comment 1 hello": 0,
    "spawn": 1,  # takes the changed tasks in, and asks git where they land
    "spawn Bea": 0,
    "retry B": 0,
    "kill A": 0,
    "merge 1": 0,
    "inbox": 0,
    "quest list": 0,
    "channel list": 0,
    "prune --dry-run": 3,
    "prune --yes": 3,
}
"""Commands that people and agents type often, and how many processes of git each may start."""

REFUSED = {"retry B", "kill A", "merge 1"}
"""Agents that do nothing and a task that nobody did: the refusal takes what the deed takes."""


def test_short_commands_load_no_runner_and_hardly_start_git(scene):
    scene.ok("new", "--title", "one")
    scene.ok("spawn", "2")
    for words, most in SHORT.items():
        code, modules, processes = what_it_takes(scene, *words.split())
        assert (words, code) == (words, 5 if words in REFUSED else 0)
        assert (words, modules & (RUNNER | SLOW)) == (words, set())
        assert processes <= most, (words, processes)


def test_a_command_ends_without_a_search_for_garbage_and_leaves_no_wal(scene):
    code = (
        "import atexit, gc, sys\n"
        "counts = lambda: (gc.get_freeze_count(), gc.get_count()[0])\n"
        "atexit.register(lambda: print(*counts(), file=sys.stderr))\n"
        "from crew.front.cli.main import main\n"
        "main(['-q', 'new', '--title', 'one'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=scene.root, capture_output=True, text=True, check=True
    )
    frozen, searched = map(int, done.stderr.split())
    assert frozen > 100 * searched
    assert not list((scene.root / ".crew").glob("crew.db-*"))


ASKED = {"new --title x": 1, "comment 1 hello": 0, "spawn": 0, "retry B": 0, "kill A": 0}


def test_short_commands_only_ask_the_runner_that_is_up(scene, running):
    scene.ok("new", "--title", "one")
    scene.plan("1", "wait")
    running("--agents", "1")
    until(lambda: scene.agent()["pid"] is not None)
    for words, most in ASKED.items():
        code, modules, processes = what_it_takes(scene, *words.split())
        assert (words, code) == (words, 5 if words == "retry B" else 0)
        assert (words, modules & {*RUNNER, "crew.runner.requests.without_runner"}) == (words, set())
        assert processes <= most, (words, processes)


def test_colours_are_for_terminals_and_for_those_who_force_them(scene):
    scene.ok("new", "--title", "x")
    assert "\x1b[" not in scene.ok("list").out
    assert "\x1b[" in scene.ok("list", FORCE_COLOR="1").out
    assert "\x1b[" not in scene.ok("list", FORCE_COLOR="1", NO_COLOR="1").out
    assert "\x1b[" not in scene.ok("list", "--no-color", FORCE_COLOR="1").out
    assert "\x1b[" not in scene.ok("list", "--json", FORCE_COLOR="1").out


def in_shell(scene, words):
    """A line that a shell runs, where `crew` alone would not do: pipes and closed streams."""
    return subprocess.run(
        ["sh", "-c", f'"{CREW}" {words}'],
        cwd=scene.root,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_reader_that_goes_away_is_no_error(scene):
    for number in range(200):
        (scene.root / f".crew/tasks/default/{number + 1}.md").write_text(
            f"---\ntitle: task {number}\n---\n{'x' * 2000}"
        )
    assert in_shell(scene, "list -a --json | head -c 10").stderr == ""


@pytest.mark.parametrize("args", ["list", "list --json", "doctor", "events", "show 9", "nope"])
def test_a_closed_output_is_silence_and_no_fault(scene, args):
    scene.ok("new", "--title", "x")
    code = {"show 9": 3, "nope": 2}.get(args, 0)
    for closed in (">&-", ">&- 2>&- <&-"):
        done = in_shell(scene, f"{args} {closed}")
        assert done.returncode == code
        assert "Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("args", ["list", "list --json", "show 9 --json"])
def test_an_output_that_takes_nothing_is_told_on_the_other_one(scene, args):
    scene.ok("new", "--title", "x")
    done = in_shell(scene, f"{args} >/dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("crew: No space left on device\nhint: ")


def test_a_fault_of_ours_is_one_line_and_the_log_has_the_rest(scene, monkeypatch, capsys):
    monkeypatch.chdir(scene.root)
    monkeypatch.setattr("crew.front.cli.watching.ps.load_agents", lambda _db: 1 / 0)
    assert run(["ps"]) == 1
    err = capsys.readouterr().err
    assert "this is a fault in crew: ZeroDivisionError" in err
    assert "Traceback" not in err
    assert "ZeroDivisionError" in (scene.root / ".crew/logs/crew.log").read_text()
    assert run(["-v", "ps"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_errors_of_the_system_are_told_without_a_traceback(capsys):
    full = OSError(28, "No space left on device", "/there/file")
    assert exit_codes.ended(full, Call(), []) == 1
    assert capsys.readouterr().err == (
        "crew: /there/file: No space left on device\n"
        "hint: free some disk space and try again; nothing is half written\n"
    )
    assert exit_codes.ended(PermissionError(13, "Permission denied"), Call(), ["--json"]) == 1
    assert '"code": "failed"' in capsys.readouterr().out
    assert exit_codes.ended(KeyboardInterrupt(), Call(), []) == 130


def test_a_folder_where_nothing_can_be_made_is_named(bare_scene):
    (bare_scene.root / ".crew").write_text("in the way")
    assert ".crew" in bare_scene.refused(1, "not_writable", "init").message


def test_a_crew_that_cannot_be_written_is_told(scene):
    lock = scene.root / ".crew" / "lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()
    assert str(lock) in scene.refused(1, "not_writable", "spawn").message


def test_a_database_of_a_newer_crew_is_refused(scene):
    import sqlite3  # noqa: PLC0415

    db = sqlite3.connect(scene.root / ".crew/crew.db")
    db.execute("PRAGMA user_version=99")
    db.close()
    scene.refused(1, "newer_schema", "ps")


def test_a_nested_repository_is_not_the_crew_around_it(scene):
    nested = scene.root / "vendor" / "other"
    nested.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", nested], check=True)
    assert scene.crew("ps", cwd=nested).code == 2
    below = scene.root / "some" / "folder"
    below.mkdir(parents=True)
    assert scene.crew("ps", "--json", cwd=below).json == []


def test_wide_and_long_texts_stay_in_their_columns():
    rows = [("1", "todo", "日本語 title"), ("22", "error", "x")]
    lines = table_lines(("ID", "STATUS", "TITLE"), rows, Call(), width=None)
    assert lines == ["ID  STATUS  TITLE", "1   todo    日本語 title", "22  error   x"]
    assert text_width("日本語") == 6
    assert cut("日本語", 4) == "日…"
    assert line("a\x1b[31mb\nc") == "ab"
    assert Path(CREW).exists()
    assert root.name == "root"


@pytest.mark.parametrize("name", sorted(LATER))
def test_a_command_of_a_later_version_is_named_and_not_taken_for_a_mistake(scene, name):
    refused = scene.refused(2, "usage", name)
    assert f"`crew {name}` is not supported" in refused.message
    assert "did you mean" not in refused.hint
    assert name not in COMMANDS


@pytest.mark.parametrize(
    "args", [("signal",), ("channel", "override", "room", "pm"), ("plugin", "install")]
)
def test_a_missing_choice_is_one_sentence(scene, args):
    refused = scene.refused(2, "usage", *args)
    assert refused.message.startswith("missing argument '{")
    assert refused.hint == f"`crew {' '.join(args[:2])} --help` shows its usage"


@pytest.mark.parametrize("typed", ["²", "banana", "-1s", ""])
def test_a_wrong_duration_is_answered_with_right_ones(scene, typed):
    assert (
        'is not a duration like "30s"'
        in scene.refused(2, "usage", "events", "--since", typed).message
    )


@pytest.mark.parametrize(
    ("args", "what"),
    [(("rm", "1"), "removed"), (("clean",), "removed"), (("trust", "--revoke"), "approved")],
)
def test_a_no_is_an_answer_too_and_one_document(scene, on_screen, args, what):
    scene.ok("new", "--title", "x")
    words = f'"{CREW}" --json {" ".join(args)} >answer'
    screen = on_screen(["/bin/sh", "-c", words], cwd=scene.root)
    screen.until("[y/N]")
    screen.type("n\n")
    assert screen.ended() == 0
    document = json.loads((scene.root / "answer").read_text())
    assert document[what] is (what == "approved")
    assert scene.status("1") == "todo"


def test_a_terminal_that_does_not_know_its_size_gets_whole_lines(scene, on_screen):
    scene.ok("new", "--title", "readable")
    screen = on_screen([CREW, "list"], cwd=scene.root)  # without a size, as in some containers
    assert screen.ended() == 0
    assert "readable" in screen.shown


def test_a_read_only_disk_is_named_once_however_often_a_command_looks(
    tmp_path, monkeypatch, capsys
):
    real = os.statvfs(tmp_path)
    read_only = os.statvfs_result((*real[:8], os.ST_RDONLY, *real[9:]))
    monkeypatch.setattr("crew.front.cli.call.os.statvfs", lambda _folder: read_only)
    call = Call()
    for _ in range(2):
        call.note_read_only(tmp_path)
    assert capsys.readouterr().err.count("read-only") == 1
