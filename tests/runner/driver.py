"""Runs a crew once in a process of its own: `python driver.py REPO SCENE.json`.

The scene names the tasks (made if they are not there yet), the kind and number of agents and what
is asked for first; or `do`, one thing to do instead of running. What came of it is the last line of
stdout, as JSON; an error exits with its own code. `CREW_TRACE=FILE` writes down every crash point
that is passed.
"""

import asyncio
import dataclasses
import json
import logging
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from crew.agents.terminal.tmux import Tmux, send_text
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.requests import Request
from crew.git.checkpoints.checkpoints import drop_checkpoints, restore
from crew.runner import runner as runner_module
from crew.runner.notices import notices
from crew.runner.requests import ask_crew
from crew.runner.run_crew import RunnerOptions, run_crew
from crew.runner.runner import Runner
from crew.store import runner_lock
from crew.store.database import LOCK_WAIT_S, open_database
from crew.store.row_repair import rebuild_rows
from crew.system import crash_points
from crew.system.full_disk import is_disk_full
from crew.system.processes.process import start_detached
from crew.tasks.task_source import NewTask
from crew.workplace import Workplace, make_workplace


def main(repo: Path, scene: dict) -> None:
    patience_s = scene.get("patience_s", runner_module.DELIVERY_PATIENCE_S)
    runner_module.DELIVERY_PATIENCE_S = patience_s
    notices.FAREWELL_S = scene.get("farewell_s", notices.FAREWELL_S)
    open_database.__kwdefaults__["wait_s"] = scene.get("lock_wait_s", LOCK_WAIT_S)
    workplace = make_workplace(repo)
    quick = dataclasses.replace(workplace.rules, delivery_retry_s=0.2, rest_after_kill_s=0.5)
    vars(workplace)["rules"] = quick
    add_missing(workplace, scene.get("tasks", []))
    if scene.get("is_patient"):
        runner_lock.is_stopped = lambda _pid: False
    if "do" in scene:
        verb, *args = scene["do"]
        DEEDS[verb](workplace, *args)
        return

    person = Person(scene.get("answer", ""))

    def prepare(runner: Runner) -> None:
        runner.take_in()
        person.meet(runner)
        kind, count = scene.get("kind", "scripted"), scene.get("agents", 3)
        runner.heed(Request(verb="spawn", args={"kind": kind, "at_least": count, "chosen": True}))
        for verb, args in scene.get("first", []):
            runner.heed(Request(verb=verb, args=args))

    options = RunnerOptions(drain=scene.get("drain", True), told=person.told)
    runner = run_crew(workplace, prepare, options=options)
    tasks = runner.engine.world.tasks.values()
    print(json.dumps({"tasks": {task.id: task.state for task in tasks}}))


@dataclasses.dataclass
class Person:
    """Answers every question with the same text, if there is one."""

    text: str
    runner: Runner | None = None

    def meet(self, runner: Runner) -> None:
        self.runner = runner
        if self.text:
            for question in [one for one in runner.engine.world.questions.values() if one.is_open]:
                self._answer(question.id)

    def told(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            if self.text and fact.kind == "question" and fact.trigger == "asked":
                asyncio.get_running_loop().call_soon(self._answer, fact.subject)

    def _answer(self, question: str) -> None:
        assert self.runner is not None
        self.runner.heed(Request(verb="answer", args={"question": question, "text": self.text}))


def add_missing(workplace: Workplace, tasks: list[dict]) -> None:
    """Repeatable: a task is known by its title; dependencies are named by title too."""
    ids = {item.title: item.id for item in workplace.source.scan(None).items}
    for task in tasks:
        if task["title"] not in ids:
            deps = tuple(ids[title] for title in task.get("deps", []))
            new = NewTask(title=task["title"], deps=deps, body=task.get("body", ""))
            ids[task["title"]] = workplace.source.add(new, at=time.time())


def ask(workplace: Workplace, verb: str, args: dict) -> None:
    print(json.dumps(ask_crew.ask(workplace, Request(verb=verb, args=args))))


def bring_back(workplace: Workplace, task: str, into: str) -> None:
    if not Path(into).exists():
        restore(workplace.repo, task, None, Path(into))


DEEDS = {
    "ask": ask,
    "restore": bring_back,
    "send": lambda workplace, pane, text: send_text(Tmux(folder=workplace.folder), pane, text),
    "detach": lambda _, log: start_detached(("/bin/sh", "-c", "echo up"), log=Path(log)),
    "drop": lambda workplace: drop_checkpoints(workplace.repo, older_than=time.time() + 60),
    "rebuild": lambda workplace: rebuild_rows(workplace.db),
    "remove": lambda workplace, task: workplace.source.remove(task),
}


def trace_to(file: str) -> None:
    passed = open(file, "a", buffering=1)  # noqa: PTH123, SIM115 - open until the process dies
    crash = crash_points.crash_point

    def crash_point(point: str) -> None:
        passed.write(f"{point}\n")
        crash(point)

    crash_points.crash_point = crash_point


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(relativeCreated)d %(name)s %(message)s")
    if os.environ.get("CREW_TRACE"):
        trace_to(os.environ["CREW_TRACE"])
    try:
        main(Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()))
    except OSError as error:  # a command of crew prints it as a sentence too
        hint = "the disk is full" if is_disk_full(error) else ""
        print(json.dumps({"error": str(error), "hint": hint}))
        sys.exit(1)
    except CrewError as error:
        print(json.dumps({"error": error.message, "hint": error.hint}))
        sys.exit(error.exit_code)
