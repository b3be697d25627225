"""`crew run`: starts the runner, in the foreground or in the background."""

import logging
import os
import sys
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import click

from crew.domain.agents.agent_kinds import left_out
from crew.domain.kernel.errors import UsageError
from crew.domain.requests import Request
from crew.domain.rows.task import FINISHED
from crew.domain.tasks.task_outcomes import Intake, seen
from crew.domain.world import World, apply_all
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.crew.spawn import checked_kind
from crew.front.cli.crew.unfinished import (
    drained_code,
    interrupted,
    summary,
    tell_leftovers,
    unfinished,
)
from crew.front.cli.exit_codes import INTERRUPTED, error_document
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import kind_option
from crew.front.cli.setup.agent_needs import check_needs
from crew.front.cli.setup.gate_notice import tell_gate
from crew.front.cli.setup.trust_command import ask_for_trust
from crew.store.fact_log import load_world
from crew.store.runner_lock import LockHeld, find_runner

if TYPE_CHECKING:
    from crew.front.cli.crew.narration import Tell
    from crew.runner.interrupts import Interrupts
    from crew.runner.runner import Runner
    from crew.workplace import Workplace

EXAMPLE = """crew run --agents 3 --drain
crew run --detach && crew dashboard"""


@dataclass(slots=True, kw_only=True)
class _Wanted:
    """The agents that the runner must have; `before` is the world at its start."""

    kind: str | None
    at_least: int | None
    before: World = field(default_factory=World)

    def prepare(self, runner: "Runner") -> None:
        runner.take_in()
        runner.kinds.default_kind = self.kind or ""
        runner.kinds.look()
        if count := self.count(runner.workplace, runner.engine.world):
            kind = runner.engine.rules.default_kind
            runner.heed(Request(verb="spawn", args={"kind": kind, "at_least": count}))
        self.before = runner.engine.world

    def count(self, workplace: "Workplace", world: World) -> int:
        """The number of agents to reach; 0 keeps the existing ones."""
        return self.at_least or (0 if world.crew else workplace.settings.run.agents)

    def check(self, call: Call, workplace: "Workplace", *, drain: bool) -> None:
        """Raise before anything is assigned if no agent can work and a task is open."""
        from crew.runner.readiness import check_ready  # noqa: PLC0415 - a refused call does without

        world = seen_world(workplace)
        rules = workplace.rules
        if self.kind:
            rules = replace(rules, default_kind=self.kind)
        new_agents = max(0, self.count(workplace, world) - len(world.crew))
        is_open = any(task.state not in FINISHED for task in world.tasks.values())
        if is_open or not drain:
            check_ready(workplace)
            check_needs(call, left_out(world, rules, new_agents=new_agents), rules)


def seen_world(workplace: "Workplace") -> World:
    """The world with every task of the source, as a runner will see it."""
    world = load_world(workplace.db)
    intake = Intake(target=workplace.target, at=time.time())
    return apply_all(world, seen(world, workplace.snapshot().items, intake))


@command("run", example=EXAMPLE)
@click.option(
    "-n",
    "--agents",
    "count",
    type=click.IntRange(1, 1000),
    help="Create agents until there are N.",
)
@kind_option("The kind of agent for this run; else [agents] worker_default.")
@click.option(
    "--drain", is_flag=True, help="Exit when nothing more can progress and all is delivered."
)
@click.option("-d", "--detach", is_flag=True, help="Run in the background and print the pid.")
@pass_call
def run(call: Call, *, count: int | None, kind: str | None, drain: bool, detach: bool) -> int:
    """Run the crew until it is stopped or all work is done.

    If there are no agents, it creates `[run] agents` of them. An idle agent follows the default
    kind, unless you chose one for it (crew spawn --agent, crew agents set). If the program of every
    agent is missing, it exits with 1 before it takes a task. With --drain the exit code is 0 if all
    it took is merged or closed, 6 if not (the list is on stderr), and 75 if a delivery waits.
    The first Ctrl-C lets running steps finish, the second ends at once; no work is lost either way.
    SIGTERM ends within [run] stop_timeout, with a checkpoint of every step that did not finish.
    """
    workplace = call.workplace()
    ask_for_trust(call, workplace)
    wanted = _Wanted(kind=kind and checked_kind(workplace, kind), at_least=count)
    if (holder := find_runner(workplace.lock_file)) is not None:
        raise LockHeld(holder)
    wanted.check(call, workplace, drain=drain)
    if not detach:
        _refuse_in_manager()
    tell_gate(call, workplace)
    _tell_level(call, workplace)
    if detach:
        return _detach(call, workplace, count=count, kind=kind, drain=drain)
    return _run_here(call, workplace, wanted, drain=drain)


def _tell_level(call: Call, workplace: "Workplace") -> None:
    """Print what is confined here; a configuration that cannot be obeyed is an error.

    Inside a manager's own sandbox no other one works, and the runner starts outside of it.
    """
    from crew.runner.background.manager_door import DOOR_VARIABLE  # noqa: PLC0415 - see below
    from crew.runner.sandbox.level import load_level  # noqa: PLC0415 - the runner needs it anyway

    if os.environ.get(DOOR_VARIABLE):
        return

    level = load_level(workplace)
    narrate(call, f"sandbox: {level.words}" + (f" ({level.fix})" if level.fix else ""))


def _refuse_in_manager() -> None:
    """A runner in the manager's own process would be confined as the manager is."""
    from crew.runner.background.manager_door import DOOR_VARIABLE  # noqa: PLC0415 - see above

    if os.environ.get(DOOR_VARIABLE):
        raise UsageError(
            "a manager starts the crew in the background",
            hint="`crew run --detach` starts it; `crew poll` waits for tasks",
            code="needs_detach",
        )


def _detach(
    call: Call, workplace: "Workplace", *, count: int | None, kind: str | None, drain: bool
) -> int:
    from crew.runner.background.detached import run_arguments, start_runner  # noqa: PLC0415 - for one way to run
    from crew.runner.background.manager_door import DOOR_VARIABLE, ask_for_runner  # noqa: PLC0415

    if os.environ.get(DOOR_VARIABLE):  # this is a manager, whose sandbox is not for runners
        pid = ask_for_runner(workplace, count=count, kind=kind, drain=drain)
    else:
        pid = start_runner(workplace, run_arguments(count=count, kind=kind, drain=drain))
    if call.json:
        print_json({"pid": pid, "log": str(workplace.logs / "crew.log")})
    else:
        say(str(pid))
    return 0


def _run_here(call: Call, workplace: "Workplace", wanted: _Wanted, *, drain: bool) -> int:
    from crew.front.cli.crew.narration import narrated  # noqa: PLC0415 - not needed to detach
    from crew.front.mcp.autostart import mcp_server  # noqa: PLC0415 - loads asyncio
    from crew.runner.run_crew import RunnerOptions, run_crew  # noqa: PLC0415 - the heaviest import of all

    open_log(workplace)
    with narrated(call, workplace) as tell:
        options = RunnerOptions(drain=drain, interrupts=interrupts(call, tell))
        runner = run_crew(workplace, wanted.prepare, options=options, beside=mcp_server)
    world = runner.engine.world
    left = unfinished(wanted.before, world)
    code = drained_code(world, left) if drain else 0
    if runner.interrupted:
        code = INTERRUPTED
    if drain or runner.interrupted:
        tell_leftovers(call, world, left)
    if call.json:
        print_json(summary(world, left, code))
    return code


def interrupts(call: Call, tell: "Tell") -> "Interrupts":
    """What Ctrl-C prints; the one that ends at once still prints its JSON document."""
    from crew.runner.interrupts import Interrupts  # noqa: PLC0415 - only a runner needs it

    def leave() -> None:
        if call.json:
            print_json(error_document(interrupted()))
        sys.stdout.flush()
        os._exit(INTERRUPTED)

    return Interrupts(tell=tell, leave=leave)


def open_log(workplace: "Workplace") -> None:
    from crew.system.bounded_log import MIB, LogHandler, limit_logs  # noqa: PLC0415 - only a runner logs
    from crew.system.log_limit import LogLimit  # noqa: PLC0415

    settings = workplace.settings.log
    limit_logs(settings.max_mb * MIB)
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(
        handlers=[LogHandler(workplace.logs / "crew.log")],
        level=settings.level.upper(),
        format="%(asctime)sZ %(levelname)s %(name)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )
    for handler in logging.getLogger().handlers:
        handler.addFilter(LogLimit())
