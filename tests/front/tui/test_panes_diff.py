"""The change of a task in the view: by file, in columns, with comments that are sent."""

import pytest
from textual.widgets import TextArea

from crew.runner.by_hand import change_text
from front.conftest import until
from front.tui.seats import SMALL, WIDE, sit

AGENT = """\
case "$(cat "$SCENE/plan-$CREW_TASK_ID" 2>/dev/null)" in
  wait) while [ ! -e "$SCENE/go" ]; do sleep 0.05; done ;;
esac
mkdir -p src
printf 'def one():\\n    return 1\\n' > src/one.py
printf '[red]markup\\033[31m\\n' > 'src/[odd].txt'
rm -f readme
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""


def finish_work(scene):
    """A crew that is killed just before it merges the work leaves its task done."""
    scene.crew("run", "--drain", CREW_CRASH_AT="git.commit_merge.before")


@pytest.fixture
def changed(scene):
    """Task 1 is done and waits for its merge."""
    (scene.folder / "agent.sh").write_text(AGENT)
    scene.ok("new", "--title", "First")
    finish_work(scene)
    assert scene.ok("show", "1", "--json").json["status"] == "done"
    return scene


async def look_at_diff(seat):
    await seat.sees("First")
    await seat.look_at("DiffPane")


async def fill(seat, text):
    await seat.until(lambda: seat.view.screen.query(TextArea))
    seat.view.screen.query_one(TextArea).text = text


async def go_to_line(seat, words):
    pane = seat.view.pane
    for index in range(len(pane.rows)):
        if words in "".join(text for text, _ in pane.line(index).spans):
            pane.move_to(index)
            await seat.pilot.pause()
            return
    raise AssertionError(words)


def test_a_change_is_shown_by_file_in_one_or_two_columns(changed):
    async def story(seat):
        await look_at_diff(seat)
        await seat.sees("src/one.py  +2 -0  added")
        await seat.sees("readme  +0 -1  deleted")
        await seat.sees("Diff of 1  +3 -1")
        pane = seat.view.pane
        await seat.press("right_square_bracket")
        first = pane.cursor
        assert pane.cursor_row.kind == "file"
        await seat.press("right_square_bracket")
        assert pane.cursor > first
        await seat.press("left_square_bracket")
        assert pane.cursor == first
        await seat.press("g", "j", "enter")
        assert (pane.cursor_row.kind, pane.cursor_row.place[0]) == ("file", 1)
        await seat.press("g")
        assert pane.cursor_row.kind == "entry"
        await seat.pilot.click(offset=(pane.region.x + 5, pane.region.y))
        await seat.until(lambda: pane.cursor_row.kind == "file")
        await seat.press("b")
        await seat.sees("two columns need a width of 100")
        await seat.press("z", "b")
        await seat.until(lambda: pane.rows and pane._painter.in_two_columns)
        assert not seat.view.query_one("#left").display
        await go_to_line(seat, "return 1")
        await seat.sees("│    2 +     return 1")
        await seat.press("b", "z")
        await seat.sees("      2 +     return 1")
        assert seat.view.query_one("#left").display

    sit(changed.root, story, size=WIDE)


def test_comments_send_a_done_task_back_as_one_text(changed):
    async def story(seat):
        await look_at_diff(seat)
        await seat.sees("src/one.py")
        await seat.press("C")
        await seat.sees("no comments yet")
        await seat.press("c")
        await seat.sees("put the cursor on a line of code")
        await go_to_line(seat, "return 1")
        await seat.press("c")
        await seat.sees("src/one.py, line 2: return 1")
        await fill(seat, "why not 2")
        await seat.press("ctrl+s")
        await seat.sees("▌ why not 2")
        await seat.sees("1 comment")
        await go_to_line(seat, "hello")
        await seat.press("enter")
        await fill(seat, "keep it")
        await seat.press("ctrl+s")
        await seat.sees("2 comments")
        await go_to_line(seat, "def one")
        await seat.press("c")
        await fill(seat, "oops")
        await seat.press("ctrl+s")
        await seat.sees("3 comments")
        await go_to_line(seat, "oops")
        await seat.press("D")
        await seat.sees("Delete this comment?")
        await seat.press("y")
        await seat.until(lambda: "oops" not in seat.text())
        await seat.press(*"vvvvvv"[: len(seat.view.query("Pane")) - 1], "v")  # once around
        await seat.sees("▌ why not 2")
        await seat.press("g")
        assert seat.view.pane.cursor_row.kind == "counter"
        await seat.press("enter")
        await seat.sees("Request changes: send task 1 back with 2 comments?")
        await seat.press("y")
        await seat.until(lambda: not seat.view.pane.comments.of("1"))
        await seat.until(lambda: "comments" not in seat.text())

    sit(changed.root, story, size=SMALL)
    assert changed.status("1") == "in_progress"
    said = changed.ok("show", "1", "--json").json["comments"][-1]["text"]
    assert said == (
        "2 comments on the change:\n\n"
        "readme, line 1 (removed):\n> hello\nkeep it\n\n"
        "src/one.py, line 2:\n>     return 1\nwhy not 2"
    )


def test_comments_on_work_in_progress_are_a_message_and_survive_a_refusal(changed):
    changed.ok("new", "--title", "Second")

    async def story(seat):
        await look_at_diff(seat)
        await seat.sees("src/one.py")
        await go_to_line(seat, "return 1")
        await seat.press("c")
        await fill(seat, "why")
        await seat.press("ctrl+s")
        await seat.sees("▌ why")
        seat.view.action_leave_task()
        await seat.press("j")
        await seat.until(lambda: seat.view.chosen_task == "2")
        await seat.press("l")
        await seat.sees("nothing is committed yet: s starts the task")
        await seat.press("h", "k", "l")
        await seat.sees("▌ why")
        await seat.press("C")
        await seat.sees("send task 1 back with 1 comment?")
        changed.ok("comment", "1", "-R", "first")  # a person elsewhere was faster
        await seat.press("y")
        await seat.sees("is in_progress, not done")
        await seat.sees("▌ why")
        await seat.until(lambda: seat.view.picture.status_of("1") == "in_progress")
        await seat.press("C")
        await seat.sees("Send 1 comment on task 1 to the agent that works on it?")
        await seat.press("n")
        await seat.sees("▌ why")
        await seat.press("C", "y")
        await seat.until(lambda: not seat.view.pane.comments.of("1"))

    sit(changed.root, story, size=SMALL)
    (message,) = changed.ok("show", "1", "--json").json["messages"]
    assert (
        message["text"] == "One comment on the change:\n\nsrc/one.py, line 2:\n>     return 1\nwhy"
    )


def test_a_new_commit_of_the_task_is_shown_and_a_merged_one_takes_no_comments(changed):
    async def story(seat):
        await look_at_diff(seat)
        await seat.sees("src/one.py  +2")
        (changed.folder / "agent.sh").write_text(AGENT.replace("return 1", "return 1 + 1"))
        changed.ok("comment", "1", "-R", "more")
        finish_work(changed)
        await seat.until(lambda: any("return 1 + 1" in str(row) for row in seat.view.pane.rows))
        changed.ok("merge", "1")
        await seat.until(lambda: seat.view.picture.status_of("1") == "merged")

    sit(changed.root, story, size=SMALL)

    async def story_after(seat):
        await seat.pilot.pause()
        await seat.press("A")
        await look_at_diff(seat)
        await seat.sees("src/one.py  +2")  # its merge commit
        await go_to_line(seat, "return 1")
        await seat.press("c")
        await fill(seat, "late")
        await seat.press("ctrl+s")
        await seat.sees("▌ late")
        await seat.press("C")
        await seat.sees("task 1 is merged, so")
        await seat.sees("▌ late")

    sit(changed.root, story_after, size=SMALL)


def test_a_large_change_is_cut_and_says_so(changed, monkeypatch):
    monkeypatch.setattr(change_text, "MOST_BYTES", 250)

    async def story(seat):
        await look_at_diff(seat)
        await seat.sees("more is not shown: crew diff 1")
        monkeypatch.setattr(change_text, "MOST_BYTES", 250_000)
        await seat.press("r")
        await seat.sees("src/one.py")
        await seat.until(lambda: "more is not shown" not in str(seat.view.pane.rows))

    sit(changed.root, story, size=SMALL)


def test_the_agent_at_work_gets_the_commits_of_its_own_repository_shown(scene, running):
    (scene.folder / "agent.sh").write_text(
        AGENT.replace("case", "case", 1).replace(
            "echo DONE", 'while [ ! -e "$SCENE/go" ]; do sleep 0.05; done; echo DONE'
        )
    )
    scene.ok("new", "--title", "First")
    running()

    async def story(seat):
        await look_at_diff(seat)
        await seat.sees("src/one.py  +2")
        scene.let_go()

    sit(scene.root, story, size=SMALL)
    until(lambda: scene.status("1") in {"done", "merged"})
