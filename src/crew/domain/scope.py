"""The scope of a runner: the tasks, the channel and the commands that it works on."""

from dataclasses import replace

from crew.domain.commands import CommandKind
from crew.domain.kernel.frozen import frozen


@frozen
class Scope:
    """Empty `tasks` and an empty `channel` mean all; so does None as `kinds`.

    Without `takes_work` no agent gets a task, a step or a turn; work under way is finished.
    """

    tasks: tuple[str, ...] = ()
    channel: str = ""
    kinds: frozenset[CommandKind] | None = None
    takes_work: bool = True

    def has_task(self, task: str) -> bool:
        return (not self.tasks or task in self.tasks) and not self.channel

    def has_channel(self, channel: str) -> bool:
        return self.channel in ("", channel) and not self.tasks

    def allows(self, kind: CommandKind) -> bool:
        return self.kinds is None or kind in self.kinds

    def with_task(self, task: str) -> "Scope":
        """The scope with this task added; a scope of all tasks includes it already."""
        if self.has_task(task):
            return self
        return replace(self, tasks=(*self.tasks, task))

    def finishing(self) -> "Scope":
        return replace(self, takes_work=False)


EVERYTHING = Scope()
