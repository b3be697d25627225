"""The commands: everything that the plan may ask a doer to do outside, each safe to repeat."""

from enum import StrEnum
from typing import ClassVar, NamedTuple

from crew.domain.kernel.frozen import frozen


class CommandKind(StrEnum):
    """Two commands of one kind about the same subject never run at once."""

    RUN = "run"
    TERMINAL = "terminal"
    INSPECT = "inspect"
    KILL = "kill"
    WRITE_ITEMS = "writeitems"
    WRITE_TASK = "writetask"
    REMOVE_WORKTREE = "removeworktree"
    MERGE_QUEUE = "mergequeue"
    TEST = "test"
    DELIVER = "deliver"
    TURN = "turn"
    VACATE = "vacate"


class CommandKey(NamedTuple):
    """The key of a command under way; `commit` is empty except for the test of a candidate."""

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
    """A command about a run, which does one thing at a time."""

    kind = CommandKind.RUN


class Prepare(RunCommand):
    """Make sure that the run's branch and worktree exist."""


class Step(RunCommand):
    """Call the agent once."""


class Check(RunCommand):
    """Inspect the worktree and run the gate on the exact commit."""


class CheckStage(RunCommand):
    """In a quest: check the work of a role, then do what the stage asks for."""


class Recover(RunCommand):
    """Policy `reset`: reset an interrupted run, or check its work if its agent had finished."""


class TerminalCommand(Command):
    """A command about a run at a terminal, which does one thing at a time."""

    kind = CommandKind.TERMINAL


class TakeOver(TerminalCommand):
    """End the step of the agent that holds the run, so that a terminal continues it."""


class OpenTerminal(TerminalCommand):
    """Make sure that the run's worktree and its terminal exist."""


class TypeIntoTerminal(TerminalCommand):
    """Type into the terminal why the work was sent back, and the messages for its agent."""


class AnswerDialog(TerminalCommand):
    """Enter the choice that a person made in the inbox."""


class CloseTerminal(TerminalCommand):
    """End the terminal with all its processes, and keep its work."""


class Inspect(Command):
    """`crew complete`: everything that `Check` does, and the conflicts that a merge would have.

    It has its own key, so that the terminal can be closed while its work is checked.
    """

    kind = CommandKind.INSPECT


class CheckAccepted(Command):
    """What the lead's check does, without an agent: a person has accepted the merge."""

    kind = CommandKind.INSPECT


class Kill(Command):
    """End all processes of an agent, keep its work, and return its task to the queue."""

    kind = CommandKind.KILL


class WriteItems(Command):
    """Write a quest's items to the source: as new tasks, or with their new texts."""

    kind = CommandKind.WRITE_ITEMS


class WriteTask(Command):
    """Write the state of a task to its source."""

    kind = CommandKind.WRITE_TASK


class RemoveWorktree(Command):
    """Save the content of an ended task's worktree as a checkpoint, then remove it."""

    kind = CommandKind.REMOVE_WORKTREE


class MergeQueueCommand(Command):
    """A command that changes a merge queue, one at a time."""

    kind = CommandKind.MERGE_QUEUE


class Assemble(MergeQueueCommand):
    """Merge the waiting tasks in memory, one on top of the other."""


class Land(MergeQueueCommand):
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
    """Call the CLI of the channel member that has the turn."""

    kind = CommandKind.TURN


class Vacate(Command):
    """End the step of a member that takes no part any more, and remove its worktree."""

    kind = CommandKind.VACATE


class Deliver(Command):
    """Bring landed work into the target branch and the checkout that shows it."""

    kind = CommandKind.DELIVER
