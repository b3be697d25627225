"""The context that every doer gets: the outside, the rules, the clock, the engine's functions."""

from collections.abc import Awaitable, Callable

from crew.agents.adapter import Controls
from crew.domain.commands import Command, CommandKey
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.channel import Member
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.world import World
from crew.runner.outside.outside import Outside


@frozen
class Context:
    """What a doer uses; it calls `world` again after each await, since rows may have changed."""

    outside: Outside
    rules: Rules
    epoch: int
    world: Callable[[], World]
    now: Callable[[], float]
    record: Callable[[list[Fact]], None]
    session_of: Callable[[Run | Member], str]
    doing: Callable[[str, str], None]
    cancel: Callable[[CommandKey], Awaitable[None]]
    later: Callable[[Command, float], None]
    signalled: Callable[[str], Awaitable[None]]
    answered: Callable[[str], Awaitable[None]]
    interrupted: Callable[[str], Awaitable[None]]
    controls: Callable[[str], Controls]

    def run(self, command: Command) -> tuple[Run, Task]:
        world = self.world()
        run = world.runs[command.subject]
        return run, world.tasks[run.task]

    def task(self, command: Command) -> Task:
        return self.world().tasks[command.subject]


Doer = Callable[[Context, Command], Awaitable[list[Fact]]]


async def kept(ctx: Context, task: Task, label: str, *, is_last: bool = False) -> None:
    """Take a checkpoint of a worktree whose processes have all ended."""
    await ctx.outside.checkpoint(task, label, is_last=is_last)
