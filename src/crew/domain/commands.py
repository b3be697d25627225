"""The commands: everything the plan may ask to be done outside, each safe to repeat."""

from crew.domain.kernel.frozen import frozen


@frozen
class Command:
    """Something to do outside; two commands with the same key never run at once."""

    subject: str

    @property
    def key(self) -> str:
        return f"{type(self).__name__.lower()} {self.subject}"


@frozen
class RunCommand(Command):
    """A command about a run; a run does one thing at a time."""

    @property
    def key(self) -> str:
        return f"run {self.subject}"


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


@frozen
class PaneCommand(Command):
    """A command about a run that a terminal session carries; one thing at a time, as for others."""

    @property
    def key(self) -> str:
        return f"pane {self.subject}"


class TakeOver(PaneCommand):
    """End the step of the agent that holds the run, which a terminal session is to go on with."""


class OpenPane(PaneCommand):
    """Make sure that the run's worktree and its terminal session exist."""


class TellPane(PaneCommand):
    """Type into the terminal session why the work came back to it."""


class ClosePane(PaneCommand):
    """End the terminal session with all it runs, and keep its work."""


class Inspect(Command):
    """`crew complete`: everything that `Check` does, and the conflicts there would be.

    Its key is its own, so that a session can be closed although its work is being looked at.
    """


class Kill(Command):
    """End everything an agent runs, keep its work, give its task back."""


class WriteItems(Command):
    """Make a quest's planned steps tasks of the source, or tell it what changed in them."""


class WriteTask(Command):
    """Tell the task's source the state crew has it in."""


class RemoveWorktree(Command):
    """The task is over: keep what is in its worktree, then remove it."""


@frozen
class LineCommand(Command):
    """A command that changes a line; a line changes one way at a time."""

    @property
    def key(self) -> str:
        return f"line {self.subject}"


class Assemble(LineCommand):
    """Merge the waiting tasks in memory, one on top of the other."""


class Land(LineCommand):
    """Move the integration ref to the longest green prefix."""


@frozen
class TestCandidate(Command):
    """Run the gate on a candidate."""

    commit: str

    @property
    def key(self) -> str:
        return f"test {self.subject} {self.commit}"


@frozen
class SpeakTurn(Command):
    """Call the CLI of a channel's member that has the turn."""

    @property
    def key(self) -> str:
        return f"turn {self.subject}"


class Vacate(Command):
    """End what a member that takes no part any more still does, and remove its worktree."""


class Deliver(Command):
    """Bring what landed into the target branch and the checkout that shows it."""


def kind_of(key: str) -> str:
    """The kind of a command, or of a wait for one: the first word of its key."""
    return key.partition(" ")[0]
