"""Each action by its key: what it changes in the repository, without a runner."""

import json
import os
import stat
import sys

import pytest

from front.tui.seats import SMALL, sit
from front.tui.terminal_desk import desk, handed_over  # noqa: F401 - fixtures

pytestmark = pytest.mark.usefixtures("handed_over")


def on_path(scene, name, script, monkeypatch):
    """A program of this name that only this test has."""
    folder = scene.folder / "bin"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}")
    (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def item(seat, task="1"):
    """The task as the view has read it from its file."""
    return seat.view.picture.items[task]


def shown(scene, task="1"):
    return scene.ok("show", task, "--json").json


def test_a_task_is_made_copied_blocked_changed_closed_and_deleted(scene, monkeypatch):
    copied = []
    scene.ok("new", "--title", "First")

    async def story(seat):
        monkeypatch.setattr(seat.view, "copy_to_clipboard", copied.append)
        await seat.sees("First")
        await seat.press("n")
        await seat.sees("New task")
        await seat.press("ctrl+s")
        await seat.hears("a task needs a title")
        await seat.type("-x [red] 2")
        await seat.press("enter")
        await seat.paste("What to do")
        await seat.press("tab")
        await seat.type("nobody")
        await seat.press("enter")
        await seat.paste("ui, urgent")
        await seat.press("enter")
        await seat.type("1")
        await seat.press("enter")
        await seat.type("0")
        await seat.press("enter")
        await seat.hears("no agent is called 'nobody'")
        await seat.until(lambda: "nobody" in seat.text() and "urgent" in seat.text())
        await seat.press(*["tab"] * 2, *["backspace"] * 6, "s", "h", "ctrl+s")
        await seat.until(lambda: seat.view.chosen_task == "2")
        made = shown(scene, "2")
        assert made["title"] == "-x [red] 2"
        assert made["body"] == "What to do"
        assert (made["agent"], made["priority"]) == ("sh", 0)
        assert (made["labels"], made["deps"]) == (["ui", "urgent"], ["1"])

        await seat.press("y", "Y")
        await seat.until(lambda: len(copied) == 2)
        assert copied[0] == "2 -x [red] 2"
        assert "after: #1" in copied[1]
        assert "What to do" in copied[1]

        await seat.press("B")
        await seat.sees("it waits for this one")
        await seat.press("enter")
        await seat.until(lambda: item(seat, "2").deps == ())
        await seat.press("B")
        await seat.sees("Which task does task 2 wait for?")
        await seat.type("first")
        await seat.press("enter")
        await seat.until(lambda: item(seat, "2").deps == ("1",))

        await seat.press("e")
        await seat.sees("Status of task 2, which is todo")
        await seat.press("enter")
        await seat.until(lambda: scene.status("2") == "closed")
        await seat.until(lambda: seat.view.chosen_task == "1")
        await seat.press("c")
        await seat.sees("Close task 1")
        await seat.press("escape")
        await seat.press("c")
        await seat.paste("not wanted")
        await seat.press("enter")
        await seat.until(lambda: scene.status("1") == "closed")
        assert shown(scene)["close_reason"] == "not wanted"

        await seat.press("A", "e")
        await seat.hears("which is final")
        await seat.press("d")
        await seat.sees("Delete task 1: First?")
        await seat.press("n", "d", "y")
        await seat.until(lambda: not (scene.root / ".crew/tasks/default/1.md").exists())

    sit(scene.root, story)


def test_a_task_is_edited_in_the_editor_of_the_person(scene, monkeypatch):
    scene.ok("new", "--title", "First", "--body", "Old text", "--label", "a", "--priority", "1")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "fake-editor --wait")
    edits = scene.folder / "edits"
    on_path(
        scene,
        "fake-editor",
        f'cp "$2" {scene.folder}/seen; [ "$1" = --wait ] && sh {edits} "$2"',
        monkeypatch,
    )

    async def story(seat):
        await seat.sees("First")
        edits.write_text("sed -i 's/title: First/title: Second/; s/labels: a/labels: b, c/' \"$1\"")
        await seat.press("E")
        await seat.until(lambda: item(seat).title == "Second")
        task = shown(scene)
        assert (task["labels"], task["body"]) == (["b", "c"], "Old text")
        assert "priority: 1\n" in (scene.folder / "seen").read_text()

        # What another process changes meanwhile stays as it is.
        edits.write_text(
            f"cd '{scene.root}'; {sys.executable} -P -m crew edit 1 --priority 3 >/dev/null;"
            ' sed -i "s/^Old text/New text/; /^labels/d" "$1"'
        )
        await seat.sees("Second")
        await seat.press("E")
        await seat.until(lambda: item(seat).body.strip() == "New text")
        task = shown(scene)
        assert (task["labels"], task["priority"], task["title"]) == ([], 3, "Second")

        edits.write_text("true")
        await seat.press("E")
        await seat.hears("nothing was changed")
        edits.write_text("exit 3")
        await seat.press("E")
        await seat.hears("ended with exit code 3")
        edits.write_text("sed -i 's/^priority.*/priority: high/' \"$1\"")
        await seat.press("E")
        await seat.sees("Edit it again?")
        edits.write_text("sed -i 's/^priority.*/priority: 4/; s/^New text//' \"$1\"")
        await seat.press("y")
        await seat.until(lambda: item(seat).priority == 4)
        assert shown(scene)["body"] == ""
        monkeypatch.setenv("EDITOR", "no-such-editor")
        await seat.press("E")
        await seat.hears("there is no editor no-such-editor")

    sit(scene.root, story)


def test_a_pull_request_is_refused_clearly_or_asked_for_and_opened(desk, monkeypatch):  # noqa: F811
    desk.new("Fix [it]", "--body", "Why", "--issue", "12")
    remote = desk.folder / "remote.git"

    async def story(seat):
        await seat.sees("Fix [it]")
        await seat.press("p")
        await seat.hears("needs gh")
        on_path(desk, "gh", f'printf "%s\\n" "$@" > {desk.folder}/gh-args\n', monkeypatch)
        await seat.press("p")
        await seat.hears("there is no remote to push to")
        desk.git("init", "-q", "--bare", str(remote))
        desk.git("remote", "add", "origin", str(remote))
        await seat.press("p")
        await seat.hears("has no commit that main does not have")
        desk.ok("start", "1")
        desk.commit("made")
        await seat.press("p")
        await seat.sees("Push crew-1-gh-12 to origin")
        await seat.press("n")
        assert desk.git("-C", str(remote), "branch") == ""
        await seat.until(lambda: len(seat.view.screen_stack) == 1)
        await seat.press("p")
        await seat.sees("Push crew-1-gh-12 to origin")
        await seat.press("y")
        await seat.hears("the pull request is open")
        branch = "crew-1-gh-12"
        assert desk.git("-C", str(remote), "show", f"{branch}:made") == "x"
        given = (desk.folder / "gh-args").read_text().splitlines()
        assert given[:5] == ["pr", "create", f"--head={branch}", "--base=main", "--title=Fix [it]"]
        assert given[-1] == "Closes #12"
        on_path(desk, "gh", "exit 4\n", monkeypatch)
        await seat.press("p")
        await seat.sees("Push crew-1-gh-12 to origin")
        await seat.press("y")
        await seat.hears("it ended with exit code 4")

    sit(desk.root, story)


def test_a_task_is_started_at_a_terminal_and_worked_on_to_its_merge(desk, monkeypatch):  # noqa: F811
    """The road without a runner: start, attach, exec, send, changes, merge, stop, start again."""
    desk.new("First")
    desk.new("Second")
    called = []
    real = "crew.front.tui.actions.action_app.run_in_person_terminal"

    async def story(seat):
        await seat.sees("Second")
        await seat.press("enter")
        await seat.sees("fake (default)")
        assert "small  does what is typed" in seat.text()
        await seat.press("enter")
        await seat.until(lambda: desk.status("1") == "in_progress")
        await seat.until(lambda: seat.view.picture.status_of("1") == "in_progress")
        await seat.sees("terminal")

        await seat.press("t")
        await seat.sees("Message to the agent of task 1")
        await seat.paste("do touch sent")
        await seat.press("ctrl+s")
        await seat.until((desk.worktree() / "sent").exists)

        await seat.press("x")
        await seat.paste("echo $PWD > where; exit 3")
        await seat.press("enter")
        await seat.until((desk.worktree() / "where").exists)
        assert (desk.worktree() / "where").read_text().strip() == str(desk.worktree())
        await seat.press("x")
        await seat.sees("echo $PWD")
        await seat.press("escape")
        for name in ("sent", "where"):
            (desk.worktree() / name).unlink()

        with monkeypatch.context() as patched:
            patched.setattr(real, lambda args, **more: called.append((args, more["waits"])))
            await seat.press("a")
            await seat.press("enter")
            await seat.press("M")
            await seat.until(lambda: len(called) == 3)
        assert called == [(("attach", "--", "1"), False)] * 2 + [(("manager",), False)]

        desk.commit("made")
        desk.ok("complete", "1")
        await seat.sees("Done (awaits merge)")
        await seat.press("R")
        await seat.sees("What must change in task 1?")
        await seat.paste("[red] more, please")
        await seat.press("ctrl+s")
        await seat.until(lambda: desk.status("1") == "in_progress")
        told = desk.folder / "told-1"
        await seat.until(lambda: "[red] more, please" in told.read_text())
        await seat.until(lambda: item(seat).comments)
        assert item(seat).comments[-1].text.strip() == "[red] more, please"

        desk.commit("more")
        desk.ok("complete", "1")
        await seat.sees("Done (awaits merge)")
        await seat.press("enter")
        await seat.sees("Merge task 1 now: First?")
        await seat.press("y")
        await seat.until(lambda: desk.status("1") == "merged")
        assert desk.git("show", "main:made") == "x"

        await seat.until(lambda: seat.view.chosen_task == "2")
        await seat.press("s", "enter")
        await seat.until(lambda: seat.view.picture.status_of("2") == "in_progress")
        await seat.press("S")
        await seat.sees("Stop task 2?")
        await seat.press("y")
        await seat.until(lambda: desk.status("2") == "error")
        await seat.until(lambda: seat.view.picture.status_of("2") == "error")
        await seat.press("u")
        await seat.until(lambda: desk.status("2") == "todo")
        await seat.until(lambda: seat.view.picture.status_of("2") == "todo")
        await seat.press("s", *["down"] * 9, "enter")
        await seat.until(lambda: desk.status("2") == "in_progress")
        assert desk.sessions() == []

    sit(desk.root, story)


def test_the_menu_offers_what_is_possible_and_takes_its_keys(scene):
    scene.ok("new", "--title", "First \x1b[31m[red]hostile[/red] " + "wide 漢字 " * 100)

    async def story(seat):
        await seat.sees("First")
        await seat.press("space")
        await seat.sees("Start it with an agent")
        text = seat.text()
        assert "[red]hostile[/red]" in text
        assert "Merge it" not in text
        assert "Stop it" not in text
        assert all(line[-1] in " │╮╯,…─" for line in seat.lines()[3:18] if len(line) > 78)
        await seat.press("c")
        await seat.sees("Close task 1")
        await seat.press("escape", "space", *["down"] * 4, "enter")
        await seat.sees("Close task 1")
        await seat.press("enter")
        await seat.until(lambda: seat.view.picture.status_of("1") == "closed")
        await seat.press("space")
        await seat.hears("choose a task first")
        await seat.press("A", "enter")
        await seat.until(lambda: seat.view.pane.has_focus)

    sit(scene.root, story, size=SMALL)


def test_the_palette_runs_actions_and_commands(scene, monkeypatch):
    scene.ok("new", "--title", "First")
    called = []

    async def story(seat):
        await seat.sees("First")
        await seat.press(":")
        await seat.type("comm")
        await seat.press("enter")
        await seat.until(lambda: "comment 1 " in seat.text())
        await seat.paste("'well done'")
        await seat.press("enter")
        await seat.until(lambda: item(seat).comments)
        assert shown(scene)["comments"][0]["text"] == "well done"

        await seat.press(":")
        await seat.type("help")
        await seat.press("enter")
        await seat.sees("Menu of what is possible")
        await seat.press("escape")

        with monkeypatch.context() as patched:
            name = "crew.front.tui.actions.action_app.run_in_person_terminal"
            patched.setattr(name, lambda args, **more: called.append((args, more["waits"])))
            for line in ("rm 1", "ls -a", "d"):
                await seat.press(":")
                await seat.paste(line)
                await seat.press("enter")
            await seat.until(lambda: len(called) == 3)
        assert called == [
            (("rm", "1"), True),
            (("ls", "-a"), True),
            (("dashboard", "--once"), True),
        ]
        await seat.press(":")
        await seat.paste("close 'x")
        await seat.press("enter")
        await seat.hears("a quote is not closed")
        await seat.press(":")
        await seat.paste("spawn 2")
        await seat.press("enter")
        await seat.until(lambda: len(scene.agents()) == 2)
        await seat.press(":")
        await seat.paste("close 77")
        await seat.press("enter")
        await seat.hears("77")
        await seat.press("q")

    sit(scene.root, story)


def test_help_inbox_refresh_and_quit(scene, monkeypatch):
    scene.ok("new", "--title", "First")
    called = []

    async def story(seat):
        await seat.sees("First")
        await seat.press("?")
        await seat.sees("Start it with an agent")
        await seat.press("end")
        await seat.sees("Restore into a folder")
        await seat.press("escape", "r")
        await seat.hears("read anew")
        await seat.sees("First")
        monkeypatch.setattr(seat.view, "show_page_if_any", lambda name: called.append(name) or True)
        await seat.press("i")
        await seat.until(lambda: called == ["InboxPage"])
        await seat.press("q")
        await seat.until(lambda: not seat.view.is_running)

    sit(scene.root, story)


def test_an_action_that_fails_is_told_and_recorded_and_the_view_goes_on(scene, monkeypatch):
    scene.ok("new", "--title", "First")

    def broken(*_args, **_more):
        raise RuntimeError("[b]unlikely[/b] \x1b[31m")

    async def story(seat):
        await seat.sees("First")
        monkeypatch.setattr(seat.view, "copy_to_clipboard", broken)
        await seat.press("y")
        await seat.sees("RuntimeError: [b]unlikely[/b]")
        await seat.press("?")
        await seat.sees("Menu of what is possible")

    sit(scene.root, story, notifications=True)
    record = (scene.root / ".crew/logs/view.log").read_text()
    assert "Traceback" in record
    assert "unlikely" in record


def test_a_terminal_that_cannot_be_handed_over_is_told(scene, monkeypatch):
    monkeypatch.undo()
    scene.ok("new", "--title", "First")

    async def story(seat):
        await seat.sees("First")
        await seat.press("M")
        await seat.hears("this terminal cannot be handed over")

    sit(scene.root, story)
    assert json.loads(scene.ok("list", "--json").out)[0]["status"] == "todo"
