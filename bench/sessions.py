"""(m) What a request of five items takes by `solo`, `plan` and `quest`: sessions and tokens.

The real Claude Code carries it out; the model behind it reads its prompts and does what they ask
for, nothing more, so that the figures are those of a run in which nothing is sent back. A token is
taken to be four characters of what the CLI sends; what a provider serves from its cache counts too.
"""

import subprocess
import sys
from pathlib import Path

from bench.scene import PROJECT, Scene, made_scene
from bench.sizes import Size
from bench.steps import environment, find_claude
from bench.tables import Figure, say, table, title
from crew.config.workflow_files import BUILT_IN, load_workflow
from crew.domain.rows.workflow import session_count

sys.path.insert(0, str(PROJECT / "tests"))
from real_clis.reader import Reader, is_first, tokens
from real_clis.scripted_model import ScriptedModel

NAMES = ("ant", "bee", "cat", "dog")  # and the list of them
ITEMS = len(NAMES) + 1
REQUEST = (
    "Write a file for each item. Each file ends with the line seal-00c0ffee. "
    f"Items: {', '.join(NAMES)}"
)
WORKFLOWS = ("solo", "plan", "quest")


def measure(_size: Size) -> list[Figure]:
    title(f"(m) A request of {ITEMS} items by {', '.join(WORKFLOWS)}, the real Claude Code")
    program = find_claude()
    if program is None:
        say("left out: claude is not installed (tests/real_clis/install.sh installs it)")
        return []
    readers = {name: _carried_out(program, name) for name in WORKFLOWS}
    alone = _tokens(readers["solo"])
    table(
        ("workflow", "sessions expected", "sessions", "requests", "tokens", "by solo's"),
        [
            (
                name,
                str(_expected(name)),
                str(_sessions(reader)),
                str(len(reader.turns)),
                f"{_tokens(reader):,}",
                f"{_tokens(reader) / alone:.2f}",
            )
            for name, reader in readers.items()
        ],
    )
    return [
        Figure(name=f"sessions of {name}, {ITEMS} items", measured=_sessions(reader))
        for name, reader in readers.items()
    ]


def _expected(name: str) -> int:
    workflow = load_workflow(BUILT_IN / f"{name}.toml")
    return session_count(workflow).for_items(ITEMS, slots=workflow.slots)


def _sessions(reader: Reader) -> int:
    return sum(is_first(asked) for asked in reader.turns)


def _tokens(reader: Reader) -> int:
    return sum(tokens(asked) for asked in reader.turns)


def _carried_out(program: str, workflow: str) -> Reader:
    with ScriptedModel() as model, made_scene([]) as scene:
        reader = Reader(sharing=0)
        model.scenarios["play"] = reader
        _configure(scene, program, environment(model, f"{model.address}/s/play"))
        _crew(scene, "quest", "new", REQUEST, "--workflow", workflow)
        _crew(scene, "run", "--agents", "3", "--drain")
    if reader.missing:
        raise RuntimeError(reader.missing[0])
    return reader


def _configure(scene: Scene, program: str, env: dict[str, str]) -> None:
    kinds = ("claude", "claude-reviewer")
    variables = "\n".join(f"{name} = {value!r}" for name, value in env.items())
    (scene.repo / ".crew" / "config.toml").write_text(
        '[complete]\ncommand = "true"\n'
        + "".join(
            f"[agents.{kind}]\ncommand = {program!r}\n[agents.{kind}.env]\n{variables}\n"
            for kind in kinds
        )
    )


def _crew(scene: Scene, *arguments: str) -> None:
    crew = Path(sys.executable).with_name("crew")
    done = subprocess.run(
        [crew, *arguments],
        cwd=scene.repo,
        env=dict(scene.env),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
