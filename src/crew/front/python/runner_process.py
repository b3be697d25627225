"""A runner that was started from Python: a process that can be awaited or stopped."""

import os
import time
from typing import Self

from crew.domain.kernel.errors import TimedOut
from crew.domain.requests import Request
from crew.runner.background.detached import launch_runner
from crew.runner.requests.runner_pipe import ask_runner
from crew.store.runner_lock import LockHeld, find_runner
from crew.workplace import Workplace

LOOK_EVERY_S = 0.05
PATIENCE_S = 60.0


def start_run(
    workplace: Workplace, *, agents: int | None, agent: str | None, drain: bool
) -> "Running":
    """Start `crew run`; raises if a runner is already up."""
    if (holder := find_runner(workplace.lock_file)) is not None:
        raise LockHeld(holder)
    args = ["run"]
    args += ["--agents", str(agents)] if agents else []
    args += ["--agent", agent] if agent else []
    args += ["--drain"] if drain else []
    return Running(workplace, launch_runner(workplace, args))


class Running:
    """A running runner; as a context manager it is stopped at the end and finishes its steps."""

    def __init__(self, workplace: Workplace, pid: int) -> None:
        self._workplace = workplace
        self.pid = pid
        self._code: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        self.wait()

    @property
    def code(self) -> int | None:
        """None while it runs; then the exit code of `crew run`: 0 if all is merged, 6 if not."""
        if self._code is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if ended else None
        return self._code

    @property
    def is_over(self) -> bool:
        return self.code is not None

    def wait(self, timeout_s: float | None = None) -> int:
        """Wait until it has ended and return its exit code; raises `TimedOut` after the timeout."""
        give_up_at = None if timeout_s is None else time.monotonic() + timeout_s
        while (code := self.code) is None:
            if give_up_at is not None and time.monotonic() > give_up_at:
                raise TimedOut(
                    f"the runner (pid {self.pid}) still runs", hint="wait longer, or stop() it"
                )
            time.sleep(LOOK_EVERY_S)
        return code

    def stop(self, *, now: bool = False) -> None:
        """Let running steps finish and start no more; `now` ends them. Nothing is lost."""
        while not self.is_over:
            holder = find_runner(self._workplace.lock_file)
            if holder is not None and holder.get("pid") == self.pid:
                request = Request(verb="stop", args={"now": now})
                folder, db = self._workplace.folder, self._workplace.db
                give_up_at = time.monotonic() + PATIENCE_S
                # A starting runner drops earlier requests, so the request is repeated.
                if ask_runner(folder, db, request, give_up_at=give_up_at) is not None:
                    return
            time.sleep(LOOK_EVERY_S)
