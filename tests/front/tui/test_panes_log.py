"""The log of a task in the view: live, followed, paused, searched, and whatever was printed."""

import json
import os

import pytest

from crew.front.tui.panes import log_pane
from crew.runner.by_hand import log_tail
from crew.runner.by_hand.log_tail import LogTail
from front.tui.seats import SMALL, sit


def log_of(scene, task="1"):
    log = scene.root / ".crew" / "logs" / f"task-{task}.log"
    log.parent.mkdir(exist_ok=True)
    return log


def write(log, *lines):
    with log.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)


async def look_at_log(seat):
    await seat.sees("First")
    await seat.look_at("LogPane")


@pytest.fixture
def one_task(scene):
    scene.ok("new", "--title", "First")
    return scene


def test_a_log_is_followed_paused_and_searched(one_task):
    log = log_of(one_task)

    async def story(seat):
        await look_at_log(seat)
        await seat.sees("no log yet: s starts the task")
        write(log, *(f"line {number}" for number in range(100)))
        await seat.sees("line 99")
        await seat.sees("following")
        write(log, "a new word")
        await seat.sees("a new word")
        await seat.press("k")
        await seat.sees("paused")
        await seat.until(lambda: "a new word" not in seat.text())
        write(log, "the last word")
        await seat.until(lambda: any("last word" in row.text for row in seat.view.pane.rows))
        assert "the last word" not in seat.text()
        await seat.press("G")
        await seat.sees("the last word")
        await seat.sees("following")
        await seat.press("f")
        await seat.sees("paused")
        await seat.press("slash")
        await seat.sees("Search in the log")
        await seat.type("LINE 4")
        await seat.press("enter")
        await seat.sees("/LINE 4 11 of 11")  # 4 and 40 to 49; the last one is above the end
        await seat.press("n")
        await seat.sees("/LINE 4 1 of 11")
        await seat.until(lambda: "│line 4" in [line.rstrip(" ▁▂▃▄▅▆▇█") for line in seat.lines()])
        await seat.press("N", "N")
        await seat.sees("/LINE 4 10 of 11")
        await seat.press("escape")
        await seat.until(lambda: "/LINE" not in seat.text())
        assert seat.view.pane.has_focus
        await seat.press("f")
        await seat.sees("the last word")

    sit(one_task.root, story, size=SMALL)


def test_earlier_lines_are_read_when_the_top_is_reached(one_task, monkeypatch):
    monkeypatch.setattr(log_tail, "LINES", 200)
    log = log_of(one_task)
    write(log, *(f"line {number}" for number in range(1_000)))

    async def story(seat):
        await look_at_log(seat)
        await seat.sees("line 999")
        pane = seat.view.pane
        assert len(pane.rows) == 200
        await seat.press("g")
        await seat.until(lambda: len(pane.rows) == 400)
        await seat.until(lambda: "line 800" in seat.text())  # where the person was
        for _ in range(4):
            await seat.press("g")
            await seat.until(lambda: pane.scroll_offset.y > 0 or len(pane.rows) == 1_000)
        await seat.until(lambda: len(pane.rows) == 1_000)
        await seat.press("g")
        await seat.until(lambda: "│line 0" in [line.rstrip(" ▁▂▃▄▅▆▇█") for line in seat.lines()])

    sit(one_task.root, story, size=SMALL)


def test_a_log_that_is_replaced_or_cut_is_read_anew(one_task, monkeypatch):
    monkeypatch.setattr(log_pane, "MOST_ENTRIES", 300)
    log = log_of(one_task)
    write(log, "an old word")

    async def story(seat):
        await look_at_log(seat)
        await seat.sees("an old word")
        log.rename(log.with_suffix(".1"))
        await seat.until(lambda: "an old word" not in seat.text())
        write(log, "a word of the new log")
        await seat.sees("a word of the new log")
        os.truncate(log, 0)
        write(log, "cut")
        await seat.sees("cut")
        assert "new log" not in seat.text()
        write(log, *(f"flood {number}" for number in range(2_000)))
        await seat.sees("flood 1999")
        write(log, "after the flood")
        await seat.sees("after the flood")

    sit(one_task.root, story, size=SMALL)


def test_whatever_was_printed_is_shown_as_text(one_task):
    log = log_of(one_task)
    said = {
        "type": "assistant",
        "message": {"content": [{"type": "text", "text": "[red]hi[/red]"}]},
    }
    write(log, "\x1b[31mred\x1b[0m \x1b]0;title\x07\x1b[2Jgone \u202eevil\u202c", json.dumps(said))
    write(log, "日本語" * 60, "tab\there", "x" * 10_000_000, "after the long line")

    async def story(seat):
        await look_at_log(seat)
        await seat.sees("after the long line")
        await seat.press("g")
        await seat.until(lambda: "… a part of a very long line is left out" in seat.text())
        while "[red]hi[/red]" not in seat.text():  # each g shows an older part of the log
            await seat.press("g")
            await seat.pilot.pause(0.05)
        text = seat.text()
        assert "red gone <U+202E>evil<U+202C>" in text
        assert "tab" in text
        assert "\x1b" not in text
        assert "\t" not in text
        assert len(seat.lines()) == SMALL[1]
        colours = {
            segment.style.color.name
            for strip in seat.view.screen._compositor.render_strips()
            for segment in strip
            if segment.text == "red" and segment.style and segment.style.color
        }
        assert len(colours) == 1

    sit(one_task.root, story, size=SMALL)


def test_a_message_that_comes_in_parts_is_one_text(tmp_path):
    log = tmp_path / "log"

    def part(text):
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        params = {"sessionId": "s", "update": update}
        write(log, json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}))

    tail = LogTail(log)
    assert tail.look().entries == ()
    part("Hel")
    first = tail.look()
    assert (first.entries, first.unfinished.text) == ((), "Hel")
    part("lo")
    assert tail.look().unfinished.text == "Hello"
    write(log, "=== A: step 1.1/1/2/1 ===")
    news = tail.look()
    assert [entry.text for entry in news.entries] == ["Hello", "A: step 1.1/1/2/1"]
    assert news.unfinished is None


def test_a_huge_log_is_read_from_its_end_in_parts(tmp_path):
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(2_000_000_000)  # sparse: takes no space
        file.seek(0, os.SEEK_END)
        file.write(b"\nsaid\n" + b"y" * 3_000_000)
    tail = LogTail(log)
    looks = [tail.look()]
    while looks[-1].has_more:
        looks.append(tail.look())
    assert 3 <= len(looks) <= 5
    assert [entry.text for look in looks for entry in look.entries] == ["said"]
    assert tail.has_earlier
    assert [entry.text for entry in tail.earlier()] == [log_tail._LEFT_OUT]
    write(log, "")
    assert not tail.look().entries[0].text.startswith("said")
    assert not tail.has_changed()
