"""The panes about one task: what happened, its checkpoints, its terminal, its text."""

import subprocess

import pytest
from textual.widgets import Input

from crew.domain.kernel.fact import Fact
from crew.front.tui.panes.fact_words import fact_spans
from crew.front.tui.view_parts import PANES
from front.conftest import CliScene, lay_crew, until
from front.quest_scene import asked, complete, questing, step
from front.tui.seats import SMALL, WIDE, sit

TERMINAL = """\
printf '\\033[31mred words\\033[0m [red] \\n'
while read -r line; do eval "$line"; done
"""
AT_TERMINAL = """\
[run]
agents = 0
[agents]
worker_default = "fake"
[agents.fake]
command_template = "sh {folder}/pane.sh"
interactive_template = "sh {folder}/pane.sh"
"""


DIALOG = """
  Would you like to run the following command?

  $ touch /etc/outside.txt

› 1. Yes, proceed (y)
  2. No, and tell Codex what to do differently (esc)

  Press enter to confirm or esc to cancel
"""  # noqa: RUF001 - what Codex prints


def test_v_goes_around_all_panes_and_each_says_what_comes_next(scene):
    scene.ok("new", "--title", "First", "--body", "Make it [red]so[/red].")
    told = {
        "DescriptionPane": "Make it [red]so[/red].",
        "LogPane": "no log yet: s starts the task",
        "DiffPane": "nothing is committed yet: s starts the task",
        "TimelinePane": "nothing happened yet: s starts the task",
        "CheckpointPane": "no checkpoint yet",
        "TerminalPane": "no terminal: a attaches, s starts one",
    }

    async def story(seat):
        await seat.sees("First")
        await seat.press("l")
        for pane in PANES:
            assert type(seat.view.pane) is pane
            await seat.sees(told[pane.__name__])
            await seat.sees(f"{pane.title} of 1")
            assert seat.view.pane.has_focus
            await seat.press("v")
        assert type(seat.view.pane) is PANES[0]
        await seat.press("h")
        assert seat.view.page.has_focus

    for size in (SMALL, WIDE):
        sit(scene.root, story, size=size)


def test_a_crew_without_tasks_has_empty_panes(scene):
    scene.ok("spawn")

    async def story(seat):
        for _ in PANES:
            await seat.press("v")
            await seat.sees("no t")  # "no task", "no terminal"
            await seat.sees("no tasks here")

    sit(scene.root, story, size=WIDE)


def test_the_timeline_tells_what_happened_and_goes_on(scene):
    scene.ok("new", "--title", "First")
    scene.plan("1", "wait")

    async def story(seat):
        await seat.sees("First")
        await seat.look_at("TimelinePane")
        await seat.sees("nothing happened yet")
        runner = scene.start("run", "--drain")
        await seat.sees("step 1 begins")
        text = seat.text()
        assert "started" in text
        assert "run 1 with sh" in text
        scene.ok("send", "1", "be [red]quick[/red]\x1b[31m")
        await seat.sees("message m1 from a person: be [red]quick[/red]")
        scene.let_go()
        await seat.sees("✓ merged")
        runner.wait(timeout=60)
        assert "says it is done; the checks begin" in seat.text()

    sit(scene.root, story, size=(100, 40))

    async def later(seat):
        seat.view.choices = seat.view.choices.__class__(everything=True)
        seat.view.page.list_again()
        await seat.look_at("TimelinePane")
        await seat.sees("✓ merged")  # the newest one is in sight
        await seat.press("g")
        await seat.sees("the task is here")

    sit(scene.root, later, size=SMALL)


def fact(kind, trigger, subject="1", **changes):
    return Fact(kind=kind, subject=subject, trigger=trigger, at=0.0, changes=changes)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (fact("run", "sent_back", round=2, ask="red_gate"), "← round 2 begins: the gate is red"),
        (fact("run", "reviewed", verdicts=[("c", "ann", False)]), "← review by ann: asks for more"),
        (fact("run", "reviewed", verdicts=[("c", "ann", True)]), "✓ review by ann: passed"),
        (fact("run", "step_started", step=3, attempt=2), "● step 3 begins (attempt 2)"),
        (fact("question", "asked", "q1", question="a\nb\x1b[2J"), "? question: asks q1: a b"),
        (fact("task", "closed", close_reason=None), "← closed"),
        (fact("task", "landed", landed_commit="0123456789abcdef"), "✓ landed as 0123456789ab"),
        (fact("walk", "stage_red"), "· quest: stage ended: red"),
        (fact("run", "a_new_trigger"), "· a new trigger"),
        (fact("task", "written"), None),
    ],
)
def test_a_fact_is_told_in_plain_words(given, words):
    spans = fact_spans(given)
    assert words == (spans and "".join(text for text, _ in spans))


def test_a_checkpoint_is_restored_into_a_folder(stuck, tmp_path):
    stuck.ok("kill", "A")

    async def story(seat):
        await seat.look_at("CheckpointPane")
        await seat.sees("  1  ")
        pane = seat.view.pane
        await seat.until(lambda: pane.rows and pane.cursor_row.__class__.__name__ == "KeptRow")
        assert pane.cursor_row.folder.endswith("my repo-worktrees/restored-1-1")
        await seat.press("enter")
        await seat.sees("Restore checkpoint 1 of task 1 into this folder")
        await seat.press("escape", "enter")
        await seat.sees("Restore checkpoint 1")
        seat.view.screen.query_one(Input).value = str(tmp_path / "back")
        await seat.press("enter")
        await seat.until((tmp_path / "back" / "readme").exists)
        await seat.sees("restored into")
        await seat.press("enter")
        await seat.sees("Restore checkpoint 1")
        seat.view.screen.query_one(Input).value = str(tmp_path / "back")
        await seat.press("enter")
        await seat.sees("not empty")

    sit(stuck.root, story, size=SMALL)


@pytest.fixture
def terminals(bare_scene):
    scene = CliScene(bare_scene.root, bare_scene.folder)
    (scene.folder / "pane.sh").write_text(TERMINAL)
    lay_crew(scene.root)
    (scene.root / ".crew" / "config.toml").write_text(AT_TERMINAL.format(folder=scene.folder))
    yield scene
    server = ["tmux", "-S", "tmux.sock", "kill-server"]
    subprocess.run(server, cwd=scene.root / ".crew", check=False, capture_output=True)


def test_the_terminal_of_a_task_is_shown_live(terminals):
    terminals.ok("new", "--title", "First")

    async def story(seat):
        await seat.look_at("TerminalPane")
        await seat.sees("no terminal: a attaches, s starts one")
        terminals.ok("start", "1")
        await seat.sees("red words [red]")
        styles = {
            segment.style.color
            for strip in seat.view.screen._compositor.render_strips()
            for segment in strip
            if segment.text == "red words"
        }
        assert len(styles) == 1
        assert styles != {None}
        terminals.ok("send", "1", "echo a second $((40 + 2)) word")
        await seat.sees("a second 42 word")
        terminals.ok("send", "1", "for n in $(seq 300); do echo line $n; done")
        await seat.sees("line 300")
        await seat.press("g")
        await seat.until(lambda: "line 300" not in seat.text())
        terminals.ok("send", "1", "echo new$((1 + 1))words")
        await seat.until(lambda: any("new2words" in str(row) for row in seat.view.pane.rows))
        assert "new2words" not in seat.text()
        await seat.press("G")
        await seat.sees("new2words")
        terminals.ok("send", "1", "exit")
        await seat.sees("no terminal: a attaches, s starts one")

    sit(terminals.root, story, size=SMALL)
    until(lambda: terminals.status("1") != "in_progress")


def test_a_dialog_at_a_terminal_is_shown_below_its_screen(terminals):
    config = terminals.root / ".crew" / "config.toml"
    config.write_text(
        config.read_text().replace("[agents.fake]", '[agents.fake]\nadapter = "codex"')
    )
    (terminals.folder / "pane.sh").write_text(f"cat '{terminals.folder}/screen'; sleep 600\n")
    (terminals.folder / "screen").write_text(DIALOG)
    terminals.ok("new", "--title", "First")
    terminals.ok("start", "1")

    async def story(seat):
        await seat.look_at("TerminalPane")
        await seat.sees("a dialog waits: Would you like to run the following command?")
        await seat.sees("i answers it")

    sit(terminals.root, story, size=SMALL)
    terminals.ok("stop", "1")


def test_the_description_names_the_quest_its_roles_and_what_is_asked(scene):
    questing(scene, {"a": {"writer": [asked("Which colour?"), complete()]}}, step("a"))
    scene.ok("quest", "new", "Request", "--workflow", "small")

    async def story(seat):
        await seat.sees("Request")
        await seat.look_at("DescriptionPane")
        await seat.sees("quest  its request")
        await seat.sees("no plan yet: a role of the quest makes it")
        scene.start("run")
        await seat.sees("writer, writes the text")  # beside the item
        await seat.press("h", "j", "l")
        await seat.sees("item a of quest 1")
        await seat.sees("role  writer, writes the text")
        await seat.sees("Which colour? (i answers q1)")

    sit(scene.root, story, size=(100, 30))


def test_the_description_flags_files_that_run_code_elsewhere(scene):
    agent = scene.folder / "agent.sh"
    hook = "mkdir -p .github/workflows\necho x > '.github/workflows/[red].yml'\n"
    agent.write_text(hook + agent.read_text())
    scene.ok("new", "--title", "First", "--body", "word " * 60)
    scene.crew("run", "--drain", CREW_CRASH_AT="git.commit_merge.before")

    async def story(seat):
        await seat.sees("First")
        await seat.look_at("DescriptionPane")
        await seat.sees(".github/workflows/[red].yml (CI)")
        assert all(len(line) <= SMALL[0] for line in seat.lines())

    sit(scene.root, story, size=SMALL)
