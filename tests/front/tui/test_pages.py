"""The pages of the view in front of real crews: inbox, merge queue, channels, costs."""

import os
import signal
from contextlib import closing

import pytest

from crew.front.tui.pages.cost_page import CostPage
from crew.store.fact_log import last_fact, load_world
from crew.workplace import find_workplace
from front.quest_scene import asked, questing, step, written
from front.tui.seats import SMALL, WIDE, sit

HOSTILE = "[red]Which[/red] \x1b[31mcolour\u202e \u4f60\u597d"
SIZES = pytest.mark.parametrize("size", [SMALL, WIDE], ids=["small", "wide"])

TABS = ("Tasks", "Agents", "Inbox", "Queue", "Channels", "Cost")


async def turn_to(seat, title):
    """Press tab until the page with this title is in sight."""
    while seat.view.page.title != title:
        await seat.press("tab")


def clean(seat):
    """What is on the screen is text: no control code, no character that reorders others."""
    text = seat.text()
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert all(len(line) <= seat.view.size.width for line in seat.lines())
    return text


@SIZES
def test_all_pages_say_what_to_do_when_there_is_nothing(scene, size):
    scene.ok("new", "--title", "First")

    async def story(seat):
        await seat.sees("Todo (1)")
        words = {
            "Agents": "no agents yet",
            "Inbox": "no open questions",
            "Queue": "nothing waits for its merge",
            "Channels": "no open channels",
            "Cost": "nothing was spent",
        }
        for title in TABS[1:]:
            await seat.press("tab")
            assert seat.view.page.title == title
            await seat.sees(words[title])
        await seat.press("tab")
        await seat.sees("Todo (1)")
        await seat.press("shift+tab")
        assert seat.view.page.title == "Cost"

    sit(scene.root, story, size=size)


@SIZES
def test_a_question_is_announced_shown_with_its_context_and_answered(scene, size):
    questing(
        scene, {"a": {"writer": [asked(HOSTILE.replace("'", "")), written("a.txt")]}}, step("a")
    )
    scene.ok("quest", "new", "Request", "--workflow", "small")

    async def story(seat):
        await seat.sees("Request")
        scene.start("run")
        await seat.until(lambda: [one for one in seat.view._notifications if "q1" in one.title])
        await seat.sees("Inbox 1")
        clean(seat)
        await turn_to(seat, "Inbox")
        await seat.sees("q1")
        await seat.sees("last words of task 2")
        text = clean(seat)
        assert "[red]Which[/red]" in text
        assert "writes an answer" in text
        assert seat.view.chosen_task == "2"
        await seat.press("enter")
        await seat.sees("ctrl+s")
        await seat.type("blue")
        await seat.press("enter")
        await seat.type("sky")
        await seat.press("ctrl+s")
        await seat.until(lambda: seat.view.picture.world.questions["q1"].answer == "blue\nsky")
        await seat.sees("no open questions")
        assert "Inbox 1" not in seat.lines()[0]
        await seat.until(lambda: seat.view.picture.world.quests["1"].state != "open")

    sit(scene.root, story, size=size)


def test_a_suspicion_is_dismissed_and_configuration_is_approved(scene):
    (scene.root / ".crew.toml").write_text('[complete]\ncommand = "true"\n')
    scene.git("add", ".crew.toml")
    scene.git("commit", "-q", "-m", "bring a gate")
    agent = scene.folder / "agent.sh"
    agent.write_text(f"crew answer q9 yes\n{agent.read_text()}")
    scene.ok("new", "--title", "First")

    async def story(seat):
        await seat.sees("Inbox 1")
        await turn_to(seat, "Inbox")
        await seat.sees("config change")
        await seat.sees('+ complete.command = "true"')
        await seat.press("enter")
        await seat.sees("Approve all of this configuration?")
        await seat.press("y")
        await seat.sees("no open questions")
        assert scene.ok("trust", "--show", "--json").json["approved"]
        scene.start("run", "--drain")
        await seat.until(lambda: seat.view.picture.world.suspicions)
        await seat.sees("tried `crew answer`")
        await seat.press("enter", "enter")
        await seat.sees("no open questions")

    sit(scene.root, story, size=SMALL)


@SIZES
def test_the_queue_tells_the_slot_of_a_test_and_what_was_sent_back(scene, size):
    hold = scene.folder / "hold"
    hold.touch()
    scene.configure(f"[complete]\ncommand = \"while [ -e '{hold}' ]; do sleep 0.05; done\"\n")
    for number in ("1", "2"):
        scene.ok("new", "--title", f"Clash {HOSTILE} {number}")
        scene.plan(number, "clash")

    async def story(seat):
        await turn_to(seat, "Queue")
        scene.start("run", "--agents", "2")
        await seat.sees("slot 1 for")
        await seat.sees("slot 2 for")
        assert seat.view.chosen_task in {"1", "2"}
        clean(seat)
        hold.unlink()
        await seat.sees("Sent back (1)")
        await seat.sees("conflicts with what landed in shared")
        clean(seat)
        await seat.press("G")
        await seat.sees("Files in conflict")
        assert seat.view.chosen_task in {"1", "2"}

    sit(scene.root, story, size=size)

    async def later(seat):
        """What was sent back before the view was opened is in the facts."""
        await turn_to(seat, "Queue")
        await seat.sees("conflicts with what landed in shared")

    sit(scene.root, later, size=size)


@SIZES
def test_a_channel_is_followed_and_a_person_speaks_in_it(scene, size):
    scene.ok("channel", "new", "reviews", "--member", "guest", "--topic", f"Sound? {HOSTILE}")

    async def story(seat):
        await turn_to(seat, "Channels")
        await seat.sees("reviews")
        await seat.sees("offline")
        await seat.sees("Sound? [red]Which[/red]")
        clean(seat)
        await seat.press("t")
        await seat.type("mind the tests")
        await seat.press("enter")
        await seat.sees("(a person)")
        await seat.until(lambda: len(seat.view.picture.world.posts) == 2)
        await seat.sees("  mind the tests")
        for number in range(40):
            scene.ok("channel", "say", "reviews", f"post {number} {HOSTILE}")
        await seat.sees("post 39")  # the end of the conversation stays in sight
        clean(seat)
        await seat.press("escape", "ctrl+u", "ctrl+u")
        await seat.until(lambda: "post 39" not in seat.text())
        scene.ok("channel", "new", "second", "--member", "other")
        await seat.sees("second")
        assert seat.view.page.channel == "reviews"
        await seat.press("j")
        await seat.until(lambda: seat.view.page.channel == "second")
        await seat.until(lambda: "post" not in "\n".join(seat.lines()[6:]))
        scene.ok("channel", "close", "reviews")
        await seat.sees("Channels 1")

    sit(scene.root, story, size=size)


@SIZES
def test_costs_are_added_up_in_four_ways_and_unknown_ones_are_said(scene, size):
    scene.ok("new", "--title", HOSTILE)
    assert scene.crew("run", "--drain").code == 0

    async def story(seat):
        await turn_to(seat, "Cost")
        await seat.sees("unknown")
        await seat.sees("[red]Which[/red]")
        assert seat.view.chosen_task == "1"
        clean(seat)
        for way, word in (("agent", "A "), ("day", "20"), ("model", "sh (its default)")):
            await seat.press("b")
            await seat.until(lambda way=way: seat.lines()[1].startswith(way))
            await seat.until(lambda word=word: seat.lines()[2].startswith(word))
        await seat.press("b")
        await seat.sees("last 14 days")

    sit(scene.root, story, size=size)


@SIZES
def test_a_killed_runner_is_told_and_no_fact_is_missed(scene, running, monkeypatch, size):
    heard = []
    take = CostPage.take

    def heed(page, news):
        heard.append(news)
        take(page, news)

    monkeypatch.setattr(CostPage, "take", heed)
    for number in ("1", "2", "3"):
        scene.ok("new", "--title", f"Task {number}")
    scene.plan("1", "wait")

    async def story(seat):
        await seat.sees("no runner")
        first = running()
        await seat.sees(f"runner {first.pid}")
        await seat.until(lambda: "In Progress" in seat.text())
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        await seat.sees("no runner")
        scene.ok("new", "--title", "Made meanwhile")
        await seat.sees("Made meanwhile")
        second = running()
        await seat.sees(f"runner {second.pid}")
        scene.let_go()
        await seat.until(lambda: seat.view.picture.world.tasks.get("4") is not None)
        await seat.until(lambda: "no tasks here" in seat.text())
        second.terminate()
        second.wait()
        await seat.sees("no runner")

        workplace = find_workplace(scene.root)
        with closing(workplace.db):
            newest = last_fact(workplace.db)
            await seat.until(lambda: seat.view.picture.number == newest)
            assert seat.view.picture.world == load_world(workplace.db)
        fresh = [news for news in heard if news.fresh]
        told = [number for news in heard for number, _ in news.facts]
        assert len(fresh) == 1
        assert told == list(range(fresh[0].picture.number + 1, newest + 1))

    sit(scene.root, story, size=size)
