"""Filter, sort, grouping, all or open, namespaces: shown, and remembered for the next time."""

import tomllib

from crew.front.tui.board.choice_memory import load_view
from crew.front.tui.board.view_choices import SORTS
from front.tui.seats import SMALL, sit

RUNTIME = ".crew/config.runtime.toml"


def remembered(scene):
    return tomllib.loads((scene.root / RUNTIME).read_text())["tui"]


def three(scene):
    scene.ok("new", "--title", "Beta", "--label", "ui", "--priority", "3")
    scene.ok("new", "--title", "Alpha", "--after", "1", "--priority", "0")
    scene.ok("new", "--title", "Gone")
    scene.ok("close", "3")


def order(seat):
    return [line.task for line in seat.view.page.rows if getattr(line, "task", "")]


def test_the_board_is_filtered_while_a_person_types(scene):
    three(scene)

    async def story(seat):
        await seat.sees("Beta")
        await seat.press("/")
        await seat.type("alp")
        assert order(seat) == ["2"]
        assert not (scene.root / RUNTIME).exists()  # it is kept once it is finished
        await seat.press("enter")
        await seat.sees("/ filter alp")
        await seat.until((scene.root / RUNTIME).exists)
        assert seat.view.page.has_focus
        await seat.press("/")
        await seat.press("escape")
        assert order(seat) == ["1", "2"]
        assert "filter alp" not in seat.text()
        await seat.press("/")
        await seat.paste("label:ui")
        await seat.press("down", "enter")
        assert order(seat) == ["1"]
        await seat.press("escape")
        assert order(seat) == ["1", "2"]
        await seat.press("/")
        await seat.paste("[red]\x1b[31m nothing")
        await seat.press("enter")
        await seat.sees("no task matches the filter: escape clears it")
        await seat.sees("filter [red]")
        await seat.press("tab", "/", "escape")
        await seat.sees("Beta")

    sit(scene.root, story, size=SMALL)
    assert remembered(scene) == {"filter": ""}


def test_the_choices_are_shown_and_hold_the_next_time(scene):
    three(scene)

    async def first(seat):
        await seat.sees("Beta")
        assert order(seat) == ["1", "2"]
        for sort in (*SORTS[1:], SORTS[0]):
            await seat.press("o")
            assert seat.view.choices.sort == sort
        await seat.press("o", "o")
        await seat.sees("sorted by priority")
        assert order(seat) == ["2", "1"]
        await seat.press("A")
        await seat.sees("all tasks")
        assert order(seat) == ["2", "1", "3"]
        await seat.press("w")
        await seat.sees("by wave")
        await seat.sees("Ready now (1)")
        await seat.press("/")
        await seat.paste("a")
        await seat.press("enter")

    async def second(seat):
        await seat.sees("Alpha")
        await seat.sees("/ filter a")
        assert "sorted by priority" in seat.text()
        assert "all tasks" in seat.text()
        assert "Next (1)" in seat.text()
        await seat.press("w", "w", "A", "escape", *["o"] * 4)
        await seat.until(lambda: "sorted" not in seat.text())

    sit(scene.root, first)
    assert remembered(scene) == {
        "sort": "priority",
        "everything": True,
        "group": "wave",
        "filter": "a",
    }
    assert scene.ok("config", "get", "tui.sort").out == "priority\n"
    assert "config.runtime.toml" in scene.ok("config", "show", "--origin").out
    sit(scene.root, second)
    assert remembered(scene) == {"sort": "id", "everything": False, "group": "state", "filter": ""}


def test_a_broken_file_of_choices_does_not_stop_the_view(scene):
    scene.ok("new", "--title", "First")
    (scene.root / RUNTIME).write_text("[tui\nsort =")

    async def story(seat):
        await seat.sees("First")
        await seat.press("o")
        await seat.sees("sorted by status")

    sit(scene.root, story)
    assert remembered(scene) == {"sort": "status"}
    assert (scene.root / f"{RUNTIME}.broken").read_text() == "[tui\nsort ="

    (scene.root / RUNTIME).write_text('[tui]\nsort = "size"\n')
    loaded = load_view(scene.root)
    assert "tui.sort" in loaded.problem
    assert loaded.settings.sort == "id"

    # A mistake in another file is the person's own: it is told, and nothing is set aside.
    scene.configure("[tui\n")
    loaded = load_view(scene.root)
    assert loaded.settings is None
    assert ".crew/config.toml" in loaded.problem

    async def failing(seat):
        await seat.sees("cannot read the crew: .crew/config.toml")
        await seat.press("o")
        await seat.hears("this choice is not kept")

    sit(scene.root, failing)


def test_another_namespace_is_only_looked_at(scene):
    scene.ok("new", "--title", "Own")

    async def story(seat):
        await seat.sees("Own")
        await seat.press("N")
        await seat.hears("there is no other namespace than default")
        scene.ok("new", "--title", "Foreign", CREW_TASKS_NAMESPACE="other")
        await seat.press("N")
        await seat.sees("the tasks of this crew")
        await seat.press("down", "enter")
        await seat.sees("Foreign")
        await seat.sees("namespace other")
        assert "Own" not in seat.text()
        for key in ("d", "c", "n"):
            await seat.press(key)
            await seat.hears("does not work on the namespace other")
        scene.ok("new", "--title", "Later", CREW_TASKS_NAMESPACE="other")
        await seat.sees("Later")
        await seat.press("N", "enter")
        await seat.sees("Own")
        await seat.until(lambda: not seat.view.choices.namespace)

    sit(scene.root, story)
    assert scene.status("1") == "todo"
