"""The run that a step, a terminal or a review reports for."""

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.run import Run
from crew.domain.world import World


@frozen
class Speaker:
    """What a token proves: an attempt at a step, the number of a terminal, or a review."""

    run: str
    attempt: int | None = None
    terminal: int | None = None
    review: str = ""


def speaking_run(world: World, speaker: Speaker) -> Run:
    """The run that the caller reports for; a step or a terminal that has ended is refused.

    Whether a review has ended is not in any row: the runner checks it.
    """
    run = world.runs.get(speaker.run)
    number = speaker.terminal
    if number is not None and (run is None or not _is_in_terminal(world, run, number)):
        raise Conflict("that terminal has ended; nothing was changed", hint="end now")
    is_step = number is None and not speaker.review
    if run is None or (is_step and not (run.stepping and run.attempt == speaker.attempt)):
        raise Conflict(
            "that step has ended; nothing was changed", hint="end your step now", code="step_over"
        )
    return run


def _is_in_terminal(world: World, run: Run, number: int) -> bool:
    terminal = world.terminal_of(run.id)
    return terminal is not None and terminal.is_open and terminal.number == number
