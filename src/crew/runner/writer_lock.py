"""Takes the lock of the one writer, and ends the processes that a killed writer left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from crew.runner.views.row_views import moment
from crew.store.place_record import Standing
from crew.store.runner_lock import COMMAND, RUNNER, writer_lock
from crew.system.private_files import close_to_others, is_open_to_others
from crew.workplace import SHARED, Workplace


@contextmanager
def holding_the_lock(workplace: Workplace, *, role: str = COMMAND) -> Iterator[None]:
    """Hold the lock of the one writer.

    A runner always looks for leftovers; a short command does so only if the last writer did not end
    in order, since no other writer leaves any.
    """
    started = str(moment(time.time()))
    with writer_lock(workplace.lock_file, role=role, started=started) as is_in_order:
        if role == RUNNER or is_open_to_others(workplace.folder):
            close_to_others(workplace.folder, besides=SHARED)
        if workplace.standing != Standing.HOME:  # before a process or a file of another is touched
            from crew.runner.settle_place import settle_place  # noqa: PLC0415 - rarely needed

            settle_place(workplace)
        if role == RUNNER or not is_in_order:
            from crew.runner.startup import repair_after_kill  # noqa: PLC0415 - rarely needed

            repair_after_kill(workplace)
        yield
