"""Handles Ctrl-C and the SIGTERM of a service manager: how a runner is ended from outside."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crew.domain.commands import CommandKind

if TYPE_CHECKING:
    from crew.runner.engine import Engine
    from crew.runner.runner import Runner

INTERRUPTED = 130

AT_ONCE_S = 1.0
"""How long the second Ctrl-C lets processes end in order.

No work is lost if they do not: the next runner ends and cleans up what is left, as after a kill.
"""

SHARE_FOR_STEPS = 0.8
"""The share of `stop_timeout` that steps get; the rest is for ending them and for checkpoints."""


@dataclass(slots=True, kw_only=True)
class Interrupts:
    """`tell` prints one line; `leave` ends this process without waiting."""

    tell: Callable[[str], None] = lambda _words: None
    leave: Callable[[], None] = lambda: os._exit(INTERRUPTED)

    def listen(self, runner: "Runner") -> None:
        loop = asyncio.get_running_loop()
        is_in_background = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        _catch_what_is_ignored()
        if not is_in_background:
            loop.add_signal_handler(signal.SIGINT, self._interrupted, runner)
        loop.add_signal_handler(signal.SIGTERM, self._terminated, runner)

    def _interrupted(self, runner: "Runner") -> None:
        is_second = runner.interrupted
        runner.interrupt()
        if is_second:
            self.tell("ending now; the next `crew run` continues from here")
            last = threading.Timer(AT_ONCE_S, self.leave)
            last.daemon = True
            last.start()
        elif runner.stopping_now:
            self.tell("ending the steps and keeping their work; Ctrl-C again ends without a wait")
        else:
            self.tell(
                f"stopping: no new step starts, {_waits_for(runner.engine)}; "
                "Ctrl-C again ends now, and no work is lost"
            )

    def _terminated(self, runner: "Runner") -> None:
        """Let steps finish within their share of the time, then end them with a checkpoint."""
        runner.stop()
        patience_s = SHARE_FOR_STEPS * runner.workplace.settings.run.stop_timeout_s
        asyncio.get_running_loop().call_later(patience_s, lambda: runner.stop(now=True))
        self.tell(
            f"stopping: no new step starts, {_waits_for(runner.engine)}; steps that have not "
            f"ended in {patience_s:.0f} s are ended, and the next runner continues them"
        )


def _catch_what_is_ignored() -> None:
    """Replace ignored signals by handlers that do nothing, as for a runner under `nohup`.

    Child processes inherit ignored signals but not handlers, so steps start with the defaults.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


def _waits_for(engine: "Engine") -> str:
    keys = list(engine.under_way)
    runs = [engine.world.runs.get(key.subject) for key in keys if key.kind == CommandKind.RUN]
    steps = [f"{run.agent} (task {run.task})" for run in runs if run is not None]
    others = len(keys) - len(steps)
    jobs = [f"{others} other job{'s' if others > 1 else ''}"] if others else []
    return f"waiting for {', '.join([*steps, *jobs])}" if keys else "nothing is under way"
