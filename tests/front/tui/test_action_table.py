"""The table of actions: each key once, all of it in the help, every command in the palette."""

import subprocess
import sys
from collections import Counter

import click

from crew.config.model import KeyBinding
from crew.config.toml.key_names import key_name
from crew.domain.rows.task import TaskState
from crew.front.cli.call import Call
from crew.front.cli.catalogue import ALIASES, COMMANDS
from crew.front.cli.root import root
from crew.front.tui.actions.action_table import ACTIONS, BY_NAME
from crew.front.tui.actions.custom_keys import clashes, usable_keys
from crew.front.tui.actions.help_sections import MOVES, built_in_keys, help_sections
from crew.front.tui.actions.typed_command import (
    ABOUT_A_TASK,
    IN_BACKGROUND,
    detached,
    is_in_background,
    palette_choices,
    shown_once,
    starts,
)
from crew.front.tui.dialogs.choice import Choice
from crew.front.tui.dialogs.fuzzy_search import best_matches
from crew.front.tui.part_keys import part_sections
from crew.front.tui.view_app import CrewView
from crew.front.tui.view_parts import PAGES, PANES
from crew.front.tui.widgets.line_list import LineList

SEED = (*"sSaxRnyYdEemcBpMr/oA?q", "enter", "space")
MORE = ("i", "K", "u", "t", ":", "w", "N")


def test_every_key_of_the_seed_is_there_and_none_stands_twice():
    assert {action.key for action in ACTIONS} == {*SEED, *MORE}
    keys = [action.key for action in ACTIONS] + [key for names, _ in MOVES for key in names]
    assert [key for key, count in Counter(map(key_name, keys)).items() if count > 1] == []
    assert len(BY_NAME) == len(ACTIONS)


def test_every_key_of_the_view_and_its_lists_stands_in_the_help():
    bound = [*CrewView.BINDINGS, *LineList.BINDINGS]
    keys = {key.strip() for one in bound for key in one.key.split(",")}
    assert keys <= set(built_in_keys(ACTIONS))


def test_the_help_has_every_action_and_every_own_key():
    own = {"f5": KeyBinding(key="f5", command="make", description="Make it")}
    shown = {line for _, lines in help_sections(ACTIONS, own) for line in lines}
    assert {(action.key, action.title) for action in ACTIONS} <= shown
    assert ("f5", "Make it") in shown


def test_the_states_of_the_menu_are_states_of_tasks():
    assert {state for action in ACTIONS for state in action.states} <= set(TaskState)


def test_every_command_of_crew_is_in_the_palette():
    class View:
        actions = ACTIONS

    values = {choice.value for choice in palette_choices(View())}
    assert {f"command:{name}" for name in COMMANDS} <= values
    assert {f"action:{action.name}" for action in ACTIONS} - values == {"action:palette"}
    assert set(starts("")) == {*COMMANDS, *ALIASES}
    assert starts("7")["show"] == "show 7 "
    assert starts("7")["run"] == "run "


def test_what_the_palette_knows_of_commands_is_true():
    top = click.Context(root, info_name="crew", obj=Call())
    for path in IN_BACKGROUND | ABOUT_A_TASK:
        name, _, below = path.partition(" ")
        command = root.get_command(top, name)
        assert command is not None, path
        assert not below or below in command.commands, path
    for name in ABOUT_A_TASK:
        command = root.get_command(top, name)
        first = next(one for one in command.params if isinstance(one, click.Argument))
        assert first.name in {"task", "tasks", "subject", "run"}, (name, first.name)


def test_a_line_runs_in_the_background_or_in_the_terminal_of_the_person():
    def where(line):
        return is_in_background(line.split())

    assert where("run --agents 3")
    assert where("add --title x")
    assert where("quest new text")
    assert where("config set run.agents 3")
    assert not where("quest list")
    assert not where("show 1")
    assert not where("rm 1")
    assert not where("new --help")
    assert not where("comment 1 -")
    assert detached(["run", "--agents", "3"]) == ["run", "--agents", "3", "--detach"]
    assert detached(["run", "-d"]) == ["run", "-d"]
    assert shown_once(["d"]) == ["dashboard", "--once"]


def test_own_keys_clash_with_built_in_ones_unless_they_mean_to():
    bound = {
        "s": KeyBinding(key="s", command="make", description="Mine"),
        "m": KeyBinding(key="m", command="make", override=True),
        "tab": KeyBinding(key="tab", command="make"),
        "f5": KeyBinding(key="f5", command="make"),
    }
    built_in = built_in_keys(ACTIONS)
    assert set(usable_keys(bound, built_in)) == {"m", "f5"}
    words = list(clashes(bound, built_in))
    assert len(words) == 2
    assert "Mine" in words[0]
    assert "Start it with an agent" in words[0]


def test_what_was_typed_finds_the_likely_line_first():
    lines = [Choice(value=name, title=name) for name in ("trust", "runs", "run", "restore")]
    lines.append(Choice(value="x", title="exec", about="Run a command", key="X"))
    assert [one.value for one in best_matches("run", lines)] == ["run", "runs", "x"]
    assert [one.value for one in best_matches("rs", lines)] == ["trust", "runs", "restore"]
    assert best_matches("X", lines)[0].value == "x"
    assert best_matches("zz", lines) == []
    assert best_matches(" ", lines) == lines


def test_the_table_needs_no_textual():
    """`crew doctor` looks at the keys, also where the view is not installed."""
    absent = "import sys; sys.modules['textual'] = sys.modules['rich'] = None; "
    script = f"{absent}import crew.front.tui.actions.action_table"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_the_help_has_the_keys_of_every_page_and_pane():
    sections = dict(part_sections())
    assert ("c", "Comment on the line") in sections["In the pane Diff"]
    assert ("f", "Follow or pause") in sections["In the pane Log"]
    assert ("enter", "Answer") in sections["On the page Inbox"]
    assert ("ctrl+d", "Scroll the text below the list down") in sections["On the page Queue"]
    for part in (*PAGES, *PANES):
        own = [one.key.split(",")[0] for one in part.__dict__.get("BINDINGS", ())]
        told = next((keys for title, keys in sections.items() if title.endswith(part.title)), [])
        assert len(told) >= len(own), part
