"""The commands: everything the plan may ask to be done outside, each safe to repeat."""

from enum import StrEnum
from typing import ClassVar, NamedTuple

from crew.domain.kernel.frozen import frozen


class CommandKind(StrEnum):
    """What two commands about the same subject must share so that they never run at once."""

    RUN = "run"
    TERMINAL = "terminal"
    INSPECT = "inspect"
    KILL = "kill"
    WRITE_ITEMS = "writeitems"
    WRITE_TASK = "writetask"
    REMOVE_WORKTREE = "removeworktree"
    LINE = "line"
    TEST = "test"
    DELIVER = "deliver"
    TURN = "turn"
    VACATE = "vacate"


class CommandKey(NamedTuple):
    """Names what is under way. `commit` is empty but for the test of a candidate."""

    kind: CommandKind
    subject: str
    commit: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


@frozen
class Command:
    """Something to do outside; two commands with the same key never run at once."""

    kind: ClassVar[CommandKind]

    subject: str

    @property
    def key(self) -> CommandKey:
        return CommandKey(self.kind, self.subject)


class RunCommand(Command):
    """A command about a run; a run does one thing at a time."""

    kind = CommandKind.RUN


class Prepare(RunCommand):
    """Make sure that the run's branch and worktree exist."""


class Step(RunCommand):
    """Call the agent once."""


class Check(RunCommand):
    """Look at the worktree and run the gate on the exact commit."""


class CheckStage(RunCommand):
    """In a quest: check what a role left, then do what the stage asks for."""


class Recover(RunCommand):
    """Policy `reset`: do with an interrupted run what seed 000's recovery table says."""


class TerminalCommand(Command):
    """A command about a run that a terminal session carries; one thing at a time, as for others."""

    kind = CommandKind.TERMINAL


class TakeOver(TerminalCommand):
    """End the step of the agent that holds the run, which a terminal session is to go on with."""


class OpenTerminal(TerminalCommand):
    """Make sure that the run's worktree and its terminal session exist."""


class TypeIntoTerminal(TerminalCommand):
    """Type into the terminal session why the work came back to it."""


class CloseTerminal(TerminalCommand):
    """End the terminal session with all it runs, and keep its work."""


class Inspect(Command):
    """`crew complete`: everything that `Check` does, and the conflicts there would be.

    Its key is its own, so that a session can be closed although its work is being looked at.
    """

    kind = CommandKind.INSPECT


class Kill(Command):
    """End everything an agent runs, keep its work, give its task back."""

    kind = CommandKind.KILL


class WriteItems(Command):
    """Make a quest's planned steps tasks of the source, or tell it what changed in them."""

    kind = CommandKind.WRITE_ITEMS


class WriteTask(Command):
    """Tell the task's source the state crew has it in."""

    kind = CommandKind.WRITE_TASK


class RemoveWorktree(Command):
    """The task is over: keep what is in its worktree, then remove it."""

    kind = CommandKind.REMOVE_WORKTREE


class LineCommand(Command):
    """A command that changes a line; a line changes one way at a time."""

    kind = CommandKind.LINE


class Assemble(LineCommand):
    """Merge the waiting tasks in memory, one on top of the other."""


class Land(LineCommand):
    """Move the integration ref to the longest green prefix."""


@frozen
class TestCandidate(Command):
    """Run the gate on a candidate."""

    kind = CommandKind.TEST

    commit: str

    @property
    def key(self) -> CommandKey:
        return CommandKey(self.kind, self.subject, self.commit)


class SpeakTurn(Command):
    """Call the CLI of a channel's member that has the turn."""

    kind = CommandKind.TURN


class Vacate(Command):
    """End what a member that takes no part any more still does, and remove its worktree."""

    kind = CommandKind.VACATE


class Deliver(Command):
    """Bring what landed into the target branch and the checkout that shows it."""

    kind = CommandKind.DELIVER
