"""The row of a terminal: a tmux terminal in which a person and an agent work on a run."""

from enum import StrEnum
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.machine import Machine, Move
from crew.domain.kernel.names import terminal_name


class TerminalState(StrEnum):
    ASKED = "asked"
    OPEN = "open"
    LEAVING = "leaving"
    CLOSED = "closed"


class Leaving(StrEnum):
    """Why a terminal is to be closed."""

    STOPPED = "stopped"
    ENDED = "ended"
    HANDED_OVER = "handed_over"


TERMINAL = Machine(
    name="terminal",
    first=TerminalState.ASKED,
    moves=(
        Move(source="asked", target="open", trigger="opened", meaning="its first process runs"),
        Move(source="open", target="leaving", trigger="ended", meaning="its last process ended"),
        Move(source="open", target="leaving", trigger="stop_asked", meaning="`crew stop`"),
        Move(source="open", target="leaving", trigger="hand_over_asked", meaning="`--headless`"),
        Move(source="asked", target="leaving", trigger="ended", meaning="it ended at once"),
        Move(source="asked", target="leaving", trigger="stop_asked", meaning="`crew stop`"),
        Move(source="asked", target="leaving", trigger="hand_over_asked", meaning="`--headless`"),
        Move(source="leaving", target="closed", trigger="closed", meaning="its work is kept"),
        Move(source="open", target="closed", trigger="closed", meaning="its task is over"),
        Move(source="asked", target="closed", trigger="closed", meaning="it could not be opened"),
        Move(source="closed", target="asked", trigger="asked", meaning="`crew start` once more"),
    ),
)


@frozen
class Terminal:
    """It has the id of the run that it carries; `number` counts the terminals of that run.

    `pid` and `started` together identify its first process. `untyped` means that the notes of the
    run still have to be typed into it. `held` means that no prompt waited for text when crew
    wanted to type; `dialog` is the question in the inbox about the dialog that its program shows.
    """

    kind: ClassVar[str] = "terminal"
    machine: ClassVar[Machine] = TERMINAL

    id: str
    task: str
    state: str = TerminalState.ASKED
    number: int = 0
    pid: int | None = None
    started: int | None = None
    leaving: str = ""
    untyped: bool = False
    held: bool = False
    dialog: str = ""

    @property
    def name(self) -> str:
        """Its name in tmux."""
        return terminal_name(self.task)

    @property
    def is_up(self) -> bool:
        """Whether it carries its run, or is about to."""
        return self.state != TerminalState.CLOSED

    @property
    def is_open(self) -> bool:
        """Whether text that is typed into it reaches its agent."""
        return self.state == TerminalState.OPEN

    @property
    def has_process(self) -> bool:
        return self.pid is not None
