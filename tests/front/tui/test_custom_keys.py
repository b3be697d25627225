"""`[tui.keybindings]`: a person's own commands on keys of the view."""

import os

import pytest

from front.conftest import CREW
from front.tui.seats import sit
from front.tui.terminal_desk import desk  # noqa: F401 - a fixture

NAMES = ("TaskID", "Worktree", "Branch", "GitDir", "RepoRoot", "BaseBranch")


@pytest.fixture
def at_work(desk):  # noqa: F811
    """Task 1 has a worktree, task 2 has none."""
    desk.new("it's; $(touch /tmp/evil) [red]")
    desk.new("Second")
    desk.ok("start", "1")
    return desk


SAMPLE = """
[tui.keybindings]
"ctrl+r" = { command = "crew run-review {{.TaskID}}", description = "Run review script" }
"""
"""As people have it in their configuration: `run-review` is an older name of `review`."""


def test_the_sample_key_that_runs_the_review_of_a_task_does_so(at_work, monkeypatch):
    monkeypatch.setenv("PATH", f"{CREW.parent}:{os.environ['PATH']}")
    reviewer = at_work.folder / "reviewer.sh"
    reviewer.write_text("echo it is fine; echo PASS\n")
    at_work.ok("config", "set", "agents.judge.command_template", f"sh {reviewer}")
    at_work.ok("config", "set", "agents.reviewer_default", "judge")
    at_work.configure(SAMPLE)
    commit = at_work.commit("a.txt")

    async def story(seat):
        await seat.sees("Second")
        await seat.press("ctrl+r")
        await seat.hears("Run review script: exit code 0")

    sit(at_work.root, story)
    (verdict,) = at_work.ok("show", "1", "--json").json["run"]["verdicts"]
    assert (verdict["reviewer"], verdict["passed"], verdict["commit"]) == ("judge", True, commit)


def test_own_keys_run_their_commands_with_the_values_of_the_task(at_work):
    values = " ".join(f"{{{{.{name}}}}}" for name in NAMES)
    at_work.configure(f"""
[tui.keybindings]
"ctrl+r" = {{ command = "printf '%s\\n' {values} > out; pwd >> out", description = "Write [it]" }}
"f5" = {{ command = "pwd > here", worktree = true }}
"f6" = {{ command = "echo first; echo 'last [b] words' >&2; exit 7" }}
"f7" = {{ command = "touch {{{{.RepoRoot}}}}/slow-began; while [ ! -e go ]; do sleep 0.05; done" }}
"m" = {{ command = "touch mine", override = true, description = "Mine" }}
"j" = {{ command = "touch down", override = true }}
"s" = {{ command = "touch never", description = "Clash" }}
""")
    root = at_work.root

    async def story(seat):
        await seat.sees("Second")
        await seat.press("ctrl+r")
        await seat.hears("Write [it]: exit code 0")
        worktree = at_work.worktree()
        assert (root / "out").read_text().splitlines() == [
            *("1", str(worktree), "crew-1", str(root / ".git"), str(root), "main"),
            str(root),
        ]
        await seat.press("f5")
        await seat.until((worktree / "here").exists)
        assert (worktree / "here").read_text().strip() == str(worktree)
        await seat.press("f6")
        await seat.hears("exit code 7\nlast [b] words")

        await seat.press("f7")
        await seat.until((root / "slow-began").exists)
        await seat.press("?")
        await seat.sees("Start it with an agent")
        await seat.press("end")
        await seat.sees("Write [it]")
        await seat.press("m", "escape")  # in a dialog it is no key of the view
        assert not (root / "mine").exists()
        (root / "go").touch()
        await seat.hears("exit code 0")

        await seat.press("m")
        await seat.until((root / "mine").exists)
        await seat.press("j")
        await seat.until((root / "down").exists)
        await seat.press("down", "f5")
        await seat.hears("which has none now")
        await seat.press("space")
        await seat.sees("Mine")
        await seat.press("escape", "s")
        await seat.sees("fake (default)")
        await seat.press("escape")
        assert not (root / "never").exists()
        await seat.press("/")
        await seat.type("mj")
        assert seat.view.choices.filter == "mj"
        await seat.press("enter", "ctrl+r")
        await seat.hears("needs a task, and none is chosen")

    sit(root, story)


def test_a_clash_is_told_when_the_view_opens_and_by_the_doctor(scene):
    scene.configure('[tui.keybindings]\n"S" = { command = "x", description = "Mine" }\n')
    scene.ok("new", "--title", "First")

    async def story(seat):
        await seat.sees("S (Mine)")
        words = [one.message for one in seat.view._notifications]
        assert any("S (Mine) is also a key of the view (Stop it)" in one for one in words)

    sit(scene.root, story, notifications=True)
    said = scene.crew("doctor", "--json")
    found = [one for one in said.json if one["check"] == "keys"]
    assert [one["state"] for one in found] == ["wrong"]
    assert "(Stop it)" in found[0]["message"]


def test_a_committed_key_waits_for_approval(scene):
    text = '[tui]\nsort = "title"\n[tui.keybindings]\n"f5" = { command = "touch evil" }\n'
    (scene.root / ".crew.toml").write_text(text)
    scene.git("add", ".crew.toml")
    scene.git("commit", "-q", "-m", "a key")
    scene.ok("new", "--title", "First")

    async def refused(seat):
        await seat.sees("First")
        assert seat.view.choices.sort == "title"
        assert seat.view.custom_keys == {}
        await seat.press("f5")

    async def approved(seat):
        await seat.sees("First")
        await seat.press("f5")
        await seat.hears("exit code 0")

    sit(scene.root, refused)
    assert "tui.keybindings.f5.command" in scene.ok("trust", "--show").out
    assert not (scene.root / "evil").exists()
    scene.ok("trust", "--yes")
    sit(scene.root, approved)
    assert (scene.root / "evil").exists()
