"""`crew run`: the runner, in the foreground or in the background."""

import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from crew.domain.requests import Request
from crew.domain.world import World
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command import command
from crew.front.cli.crew_agents import checked_kind
from crew.front.cli.leftovers import drained_code, summary, tell_leftovers, unfinished
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import kind_option
from crew.store.lock import LockHeld, find_runner

if TYPE_CHECKING:
    from crew.runner.loop import Runner
    from crew.runner.workplace import Workplace

EXAMPLE = """crew run --agents 3 --drain
crew run --detach && crew dashboard"""


@dataclass(slots=True, kw_only=True)
class _Wanted:
    """What is asked of the runner before it starts; `before` is the world it then finds."""

    kind: str
    at_least: int | None
    before: World = field(default_factory=World)

    def prepare(self, runner: "Runner") -> None:
        runner.take_in()
        has_agents = bool(runner.engine.world.agents)
        count = self.at_least or (0 if has_agents else runner.workplace.settings.run.agents)
        if count:
            runner.heed(Request(verb="spawn", args={"kind": self.kind, "at_least": count}))
        self.before = runner.engine.world


@command("run", example=EXAMPLE)
@click.option(
    "-n", "--agents", "count", type=click.IntRange(1, 1000), help="Make sure so many agents exist."
)
@kind_option("The kind of the agents it makes; else [agents] worker_default.")
@click.option("--drain", is_flag=True, help="End when nothing more can move and all is delivered.")
@click.option("-d", "--detach", is_flag=True, help="Run in the background and print the pid.")
@pass_call
def run(call: Call, *, count: int | None, kind: str | None, drain: bool, detach: bool) -> int:
    """Run the crew until you stop it, or until all is done.

    Without agents it makes as many as [run] agents says. With --drain the exit code is 0 if all
    it took is merged or closed, 6 if not (the list is on stderr), and 75 if a delivery waits.
    The first Ctrl-C lets running steps finish, the second ends them; no work is lost either way.
    """
    workplace = call.workplace()
    wanted = _Wanted(kind=checked_kind(workplace, kind), at_least=count)
    if (holder := find_runner(workplace.lock_file)) is not None:
        raise LockHeld(holder)
    _warn_of_missing(call, workplace, wanted.kind)
    if detach:
        return _detach(call, workplace, count=count, kind=kind, drain=drain)
    return _run_here(call, workplace, wanted, drain=drain)


def _detach(
    call: Call, workplace: "Workplace", *, count: int | None, kind: str | None, drain: bool
) -> int:
    from crew.front.cli.detach import start_runner  # noqa: PLC0415 - for one way to run

    args = ["run"]
    args += ["--agents", str(count)] if count else []
    args += ["--agent", kind] if kind else []
    args += ["--drain"] if drain else []
    pid = start_runner(workplace, args)
    if call.json:
        print_json({"pid": pid, "log": str(workplace.logs / "crew.log")})
    else:
        say(str(pid))
    return 0


def _run_here(call: Call, workplace: "Workplace", wanted: _Wanted, *, drain: bool) -> int:
    from crew.front.cli.narration import narrated  # noqa: PLC0415 - not needed to detach
    from crew.front.mcp.beside import mcp_server  # noqa: PLC0415 - loads asyncio
    from crew.runner.loop import run_crew  # noqa: PLC0415 - the heaviest import of all

    open_log(workplace)
    with narrated(call, workplace):
        runner = run_crew(workplace, wanted.prepare, drain=drain, beside=mcp_server)
    world = runner.engine.world
    left = unfinished(wanted.before, world)
    code = drained_code(world, left) if drain else 0
    if runner.interrupted:
        code = 130
    if drain or runner.interrupted:
        tell_leftovers(call, world, left)
    if call.json:
        print_json(summary(world, left, code))
    return code


def open_log(workplace: "Workplace") -> None:
    workplace.logs.mkdir(parents=True, exist_ok=True)
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(
        filename=workplace.logs / "crew.log",
        level=workplace.settings.log.level.upper(),
        format="%(asctime)sZ %(levelname)s %(name)s %(message)s",
        datefmt="%Y-%m-%dT%H:%M:%S",
    )


def _warn_of_missing(call: Call, workplace: "Workplace", kind: str) -> None:
    from crew.front.cli.agents import missing_program  # noqa: PLC0415

    missing = missing_program(workplace.settings.agents.named(kind))
    if missing is not None:
        narrate(call, f"warning: {missing} is not installed, and the agent {kind} needs it")
