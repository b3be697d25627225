"""Writes the pages that are made from the code: machines, commands, workflows, agents and others.

`python docs/generate.py` writes them, `--check` only says whether they are up to date.
"""

import sys
from pathlib import Path

import agent_abilities
import architecture
import click

from crew.config.workflow_files import BUILT_IN, load_workflow
from crew.domain.kernel.machine import Machine, Move
from crew.domain.rows.agent import AGENT
from crew.domain.rows.channel import TURN
from crew.domain.rows.quest import QUEST_STEP
from crew.domain.rows.run import RUN
from crew.domain.rows.task import TASK
from crew.domain.rows.terminal import TERMINAL
from crew.front.cli.call import Call

DOCS = Path(__file__).parent

PURPOSES = {
    "agent": "A named worker slot that carries one task at a time.",
    "task": "The unit of work, with its branch and worktree.",
    "run": "One try at a task, as rounds of work and review.",
    "terminal": "A tmux session that carries a run in place of an agent slot.",
    "channel turn": "The right to speak in a conversation of agents and people.",
    "quest step": "One item of a quest, moved by signals.",
}


def machines_page() -> str:
    parts = [
        "# The six machines",
        "",
        "Generated from the tables in `src/crew/domain/rows/`.",
        "A move that is not in a table is refused.",
        "Moves with a reason in the last column were added to the original design.",
    ]
    for machine in (AGENT, TASK, RUN, TERMINAL, TURN, QUEST_STEP):
        parts += ["", *_machine(machine)]
    return "\n".join(parts) + "\n"


def _diagram(machine: Machine) -> list[str]:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {machine.first}"]
    lines += [f"    {m.source} --> {m.target}: {m.trigger}" for m in machine.moves]
    lines += [f"    {state} --> [*]" for state in machine.states if machine.is_final(state)]
    return [*lines, "```"]


def _machine(machine: Machine) -> list[str]:
    lines = [f"## {machine.name.capitalize()}", "", PURPOSES[machine.name], "", *_diagram(machine)]
    lines += ["", "| from | to | trigger | meaning | why it was added |"]
    lines += ["|---|---|---|---|---|"]
    return lines + [_row(move) for move in machine.moves]


def _row(move: Move) -> str:
    cells = (move.source, move.target, move.trigger, move.meaning, move.added)
    return f"| {' | '.join(cells)} |"


def commands_page() -> str:
    from crew.front.cli.root import root  # noqa: PLC0415 - loads every command

    parts = ["# Commands", "", "Generated from the commands' own help.", ""]
    top = click.Context(root, info_name="crew", obj=Call())
    for name in root.list_commands(top):
        command = root.get_command(top, name)
        if command is None or command.hidden:
            continue
        context = click.Context(command, info_name=name, parent=top, terminal_width=80)
        parts += _command(f"crew {name}", command, context)
        for part, below in getattr(command, "commands", {}).items():
            nested = click.Context(below, info_name=part, parent=context, terminal_width=80)
            parts += _command(f"crew {name} {part}", below, nested)
    return "\n".join(parts)


def _command(name: str, command: click.Command, context: click.Context) -> list[str]:
    return [f"## {name}", "", "```text", command.get_help(context).rstrip(), "```", ""]


def workflows_page() -> str:
    from crew.front.cli.quests.workflow_drawing import drawing  # noqa: PLC0415 - beside the commands

    parts = [
        "# The built-in workflows",
        "",
        "Drawn by `crew workflows NAME`; [Quests](quests.md) explains how to write your own.",
    ]
    for file in sorted(BUILT_IN.glob("*.toml")):
        drawn = "\n".join(drawing(load_workflow(file)))
        parts += ["", f"## {file.stem}", "", "```text", drawn, "```"]
    return "\n".join(parts) + "\n"


def channels_page() -> str:
    """Written by hand, but for the diagram."""
    return _with_part("channels.md", "the machine of turns", "\n".join(_diagram(TURN)) + "\n")


def view_page() -> str:
    """Written by hand, but for the keys."""
    from crew.front.tui.actions.action_table import ACTIONS  # noqa: PLC0415 - needs the extra
    from crew.front.tui.actions.help_sections import help_sections  # noqa: PLC0415
    from crew.front.tui.part_keys import part_sections  # noqa: PLC0415

    lines: list[str] = []
    for section, keys in [*help_sections(ACTIONS, {}), *part_sections()]:
        lines += ["", f"**{section}**", "", "| key | |", "|---|---|"]
        lines += [f"| {_keys(key)} | {title} |" for key, title in keys]
    return _with_part("view.md", "the keys of the view", "\n".join([*lines[1:], "", ""]))


def _keys(text: str) -> str:
    return " ".join(f"`{key}`" for key in text.split())


def _with_part(name: str, part: str, made: str) -> str:
    """A page with its generated part in place of the old one."""
    begin, end = f"<!-- generated: {part} -->\n", "<!-- end -->\n"
    before, _, rest = (DOCS / name).read_text().partition(begin)
    return before + begin + made + end + rest.partition(end)[2]


PAGES = {
    "agents.md": agent_abilities.page,
    "machines.md": machines_page,
    "commands.md": commands_page,
    "workflows.md": workflows_page,
    "channels.md": channels_page,
    "view.md": view_page,
    "architecture.svg": architecture.picture,
}


def main(*, check: bool) -> int:
    stale = []
    for name, make in PAGES.items():
        path, text = DOCS / name, make()
        if path.exists() and path.read_text() == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text)
    if check and stale:
        print(f"out of date: {', '.join(stale)}; run `make docs`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv))
