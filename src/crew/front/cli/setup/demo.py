"""`crew demo`: a sample repository with eight tasks and three scripted agents."""

import json
import shutil
import tempfile
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from crew.domain.requests import Request
from crew.domain.rows.task import TaskState
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import dollars, narrate, print_json, say, table, thousands

if TYPE_CHECKING:
    from crew.runner.runner import Runner
    from crew.workplace import Workplace

SHOP = Path(__file__).with_name("demo_shop.toml")
AGENTS = 3


@command("demo", example="crew demo --keep")
@click.option("--keep", is_flag=True, help="Keep the sample repository and print its path.")
@pass_call
def demo(call: Call, *, keep: bool) -> int:
    """Watch a crew work in a sample repository.

    Eight tasks, three scripted agents, real worktrees, gates, reviews and merges. One gate is red
    at first, one review fails, two tasks conflict, one agent crashes, and one asks a question,
    which the demo answers. It needs no key and no network.
    """
    folder = Path(tempfile.mkdtemp(prefix="crew-demo-"))
    try:
        workplace = _shop(folder / "shop")
        narrate(call, f"eight tasks, {AGENTS} scripted agents, in {workplace.root}\n")
        began = time.monotonic()
        world = _run(call, workplace)
        _tell(call, workplace, world, seconds=time.monotonic() - began)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 0 if _all_merged(world) else 6


def _shop(root: Path) -> "Workplace":
    """The sample repository with its crew set up."""
    from crew.runner.sample_repository import make_repository  # noqa: PLC0415
    from crew.workplace import make_workplace  # noqa: PLC0415

    shop = tomllib.loads(SHOP.read_text(encoding="utf-8"))
    make_repository(root, shop["files"], message="The shop has prices")
    _configure(root / ".crew", shop)
    workplace = make_workplace(root)
    _add_tasks(workplace, shop["tasks"])
    return workplace


def _configure(folder: Path, shop: Mapping[str, Any]) -> None:
    folder.mkdir()
    script = folder / "demo.json"
    script.write_text(json.dumps({"tasks": shop["script"]}))
    lines = [
        '[agents]\nworker_default = "scripted"',
        f"[agents.scripted]\nscript = {json.dumps(str(script))}",
        '[agents.critic]\ninherit = "scripted"',
        '[review]\nmode = "single"\nagent = "critic"',
        f"[complete]\ncommand = {json.dumps(shop['gate'])}",
    ]
    (folder / "config.toml").write_text("\n".join(lines) + "\n")


def _add_tasks(workplace: "Workplace", tasks: list[dict[str, Any]]) -> None:
    from crew.tasks.task_source import NewTask  # noqa: PLC0415

    ids: dict[str, str] = {}
    for task in tasks:
        deps = tuple(ids[title] for title in task.get("after", ()))
        new = NewTask(title=task["title"], deps=deps)
        ids[task["title"]] = workplace.source.add(new, at=time.time())


def _run(call: Call, workplace: "Workplace") -> World:
    from crew.front.cli.crew.narration import narrated  # noqa: PLC0415
    from crew.runner.run_crew import RunnerOptions, run_crew  # noqa: PLC0415

    def prepare(runner: "Runner") -> None:
        runner.take_in()
        runner.heed(
            Request(verb="spawn", args={"kind": "scripted", "chosen": True, "at_least": AGENTS})
        )

    while True:
        with narrated(call, workplace):
            world = run_crew(workplace, prepare, options=RunnerOptions(drain=True)).engine.world
        if not _answered(call, workplace, world):
            return world


def _answered(call: Call, workplace: "Workplace", world: World) -> bool:
    """Answer open questions as a person would; whether there were any."""
    from crew.runner.requests.ask_crew import ask  # noqa: PLC0415

    answers = tomllib.loads(SHOP.read_text(encoding="utf-8"))["answers"]
    found = [question for question in world.questions.values() if question.is_open]
    for question in found:
        text = answers[question.question]
        narrate(call, f"\ntask {question.task} asks: {question.question}")
        narrate(call, f"  (you would type) crew answer {question.id} {text!r}\n")
        ask(workplace, Request(verb="answer", args={"question": question.id, "text": text}))
    return bool(found)


def _tell(call: Call, workplace: "Workplace", world: World, *, seconds: float) -> None:
    from crew.runner.sample_repository import drawn_history  # noqa: PLC0415

    graph = drawn_history(workplace.root)
    if call.json:
        print_json(_document(workplace, world, seconds))
        return
    say(f"\n{graph}\n")
    table(("TASK", "TITLE", "STATE", "ROUNDS", "STEPS", "TOKENS", "COST"), _rows(world), call)
    costs = [run.cost_usd for run in world.runs.values()]
    total = dollars(sum(cost or 0.0 for cost in costs))
    merged = sum(task.state == TaskState.MERGED for task in world.tasks.values())
    say("")
    for words in _talk(world):
        say(words)
    say(f"{merged} of {len(world.tasks)} tasks merged in {seconds:.0f} s, for {total}.")


def _talk(world: World) -> list[str]:
    """The failed reviews and the answers, one line each."""
    said_no = [
        f"{reviewer} did not pass {commit[:7]} of task {run.task}, and it went back."
        for run in world.runs.values()
        for commit, reviewer, passed in run.verdicts
        if not passed
    ]
    asked = [
        f'task {one.task} asked "{one.question}" and was told "{one.answer}".'
        for one in world.questions.values()
    ]
    return said_no + asked


def _rows(world: World) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for task in world.tasks.values():
        run = world.runs[str(task.run)]
        tokens = thousands(run.input_tokens + run.output_tokens)
        counts = (str(run.round), str(run.steps), tokens, dollars(run.cost_usd))
        rows.append((task.id, task.title, task.state, *counts))
    return rows


def _document(workplace: "Workplace", world: World, seconds: float) -> dict[str, Any]:
    from crew.runner.views.row_views import question_view  # noqa: PLC0415

    return {
        "root": str(workplace.root),
        "tasks": {task.id: str(task.state) for task in world.tasks.values()},
        "questions": [question_view(question) for question in world.questions.values()],
        "seconds": round(seconds, 1),
    }


def _all_merged(world: World) -> bool:
    return all(task.state == TaskState.MERGED for task in world.tasks.values())
