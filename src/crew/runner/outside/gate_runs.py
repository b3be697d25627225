"""Runs the gate on an exact commit, in worktrees of its own that are reused."""

import asyncio
import contextlib
import functools
import logging
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crew.config.gate_command import Gate, choose_gate, read_gate_files
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.text import plain, printable
from crew.domain.runs.gate import GateExit, GateResult, gate_ended, without_gate
from crew.git.worktrees.folder_removal import abandon
from crew.git.worktrees.worktrees import ensure_detached, remove_worktree
from crew.runner.outside.worktree_setup import furnish_gate
from crew.runner.requests.door_folder import REPORT_DOOR, REPORT_TOKEN, door_socket
from crew.runner.requests.tokens import Tokens
from crew.runner.sandbox.confinement import for_command
from crew.store.kept_values import LastGate, RunningGate, keep_gate, keep_last_gate
from crew.system.full_disk import refuse_full_disk
from crew.system.processes.allowed_environment import allowed_environment
from crew.system.processes.process import ProcessOrder, is_confined, run_process
from crew.workplace import Workplace

log = logging.getLogger(__name__)

OUTPUT_KEPT = 64_000
OUTPUT_SHOWN = 8_000
_NAME = ".gate-"


@dataclass(slots=True, kw_only=True)
class GateRuns:
    """Runs up to one gate per processor, each in the free worktree with the lowest number."""

    workplace: Workplace
    _slots: list[int] = field(default_factory=lambda: list(range(1, (os.cpu_count() or 1) + 1)))
    _free: asyncio.Condition = field(default_factory=asyncio.Condition)
    _started: int = 0

    async def run(self, commit: str, *, task: str, command: str = "") -> GateResult:
        async with self._worktree(commit, task) as path:
            await asyncio.to_thread(self._check_out, path, commit)
            await furnish_gate(self.workplace, path, task=task)
            gate = await self._gate(path, command)
            if gate is None:
                return without_gate(is_required=self.workplace.settings.complete.require_gate)
            return await self._run(gate, path, commit, task)

    def _check_out(self, path: Path, commit: str) -> None:
        """Make the worktree exact. One that the code of a gate has made unusable is replaced."""
        workplace, repo = self.workplace, self.workplace.repo
        check_out = functools.partial(
            ensure_detached, kind=workplace.worktree_kind, keep=workplace.settings.gate.keep
        )
        try:
            check_out(repo, path, commit)
        except (CrewError, OSError) as error:
            log.warning("a gate's worktree is replaced: %s", error)
            abandon(repo, path)
            check_out(repo, path, commit)

    async def _gate(self, path: Path, command: str) -> Gate | None:
        configured = (command or self.workplace.settings.complete.command or "").strip()
        files = {} if configured else await asyncio.to_thread(read_gate_files, path)
        return choose_gate(configured, files)

    def tidy(self) -> None:
        """Remove the worktrees that `[worktree] pool` does not ask to keep warm.

        This includes incomplete ones that a killed runner left.
        """
        folder, kept = self.workplace.worktrees, self.workplace.settings.worktree.pool
        found = (path.name.removeprefix(_NAME) for path in folder.glob(f"{_NAME}*"))
        numbers = {*self._slots, *(int(number) for number in found if number.isdigit())}
        for number in sorted(number for number in numbers if number > kept):
            try:
                remove_worktree(self.workplace.repo, folder / f"{_NAME}{number}")
            except (CrewError, OSError) as error:
                log.warning("a gate's worktree stays: %s", error)
        with contextlib.suppress(OSError):
            folder.rmdir()

    @asynccontextmanager
    async def _worktree(self, commit: str, task: str) -> AsyncIterator[Path]:
        async with self._free:
            await self._free.wait_for(lambda: self._slots)
            number = self._slots.pop(0)
        self._tell(RunningGate(slot=number, commit=commit, task=task, since=time.time()))
        try:
            yield self.workplace.worktrees / f"{_NAME}{number}"
        finally:
            self._tell(RunningGate(slot=number, commit="", task="", since=time.time()))
            async with self._free:
                self._slots = sorted([*self._slots, number])
                self._free.notify()

    def _tell(self, gate: RunningGate) -> None:
        """Let views show what the slot tests; a gate does not depend on it."""
        with contextlib.suppress(CrewError, OSError):
            keep_gate(self.workplace.db, gate)

    async def _run(self, gate: Gate, path: Path, commit: str, task: str) -> GateResult:
        tail, order = _RawTail(), self._order(gate, path, commit, task)
        end = await run_process(order, on_started=lambda _pid: None, on_output=tail.add)
        has_run = end.reason in {"exited", "timeout"}
        result = gate_ended(
            gate.command,
            GateExit(
                code=end.code,
                output=tail.text,
                broken_off="" if end.reason == "exited" else end.message,
                limit=in_words(order.timeout_s) if end.reason == "timeout" else "",
                is_missing=end.reason == "not_found",
                is_cut_off=has_run and not order.allowed.has_network and is_confined(order),
            ),
            allows_no_tests=self.workplace.settings.complete.on_no_tests == "pass",
        )
        if not result.passed:
            refuse_full_disk(path)  # no fault of the work: the gate is run again
        self._keep(result, commit, task)
        return result

    def _keep(self, result: GateResult, commit: str, task: str) -> None:
        """Let `crew show` print the end of the output; a gate does not depend on it."""
        last = LastGate(
            command=result.command,
            passed=result.passed,
            commit=commit,
            at=time.time(),
            output=result.output[-OUTPUT_SHOWN:],
        )
        with contextlib.suppress(CrewError, OSError):
            keep_last_gate(self.workplace.db, task, last)

    def _order(self, gate: Gate, path: Path, commit: str, task: str) -> ProcessOrder:
        self._started += 1
        limit_s = self.workplace.settings.complete.timeout_s
        caller, door = allowed_environment(os.environ), door_socket(self.workplace)
        return ProcessOrder(
            argv=("sh", "-c", f"exec 2>&1\n{gate.command}"),
            cwd=path,
            env={
                **caller,
                "CREW_TASK_ID": task,
                "CREW_COMMIT": commit,
                "CREW_WORKTREE": str(path),
                "PYTHONDONTWRITEBYTECODE": "1",
                REPORT_DOOR: str(door),
                REPORT_TOKEN: Tokens(self.workplace.folder).gate_token(task),
            },
            log=self.workplace.task_log(task) if task else self.workplace.logs / "merge.log",
            marker=f"{self.workplace.repo_id}/gate/{commit[:12]}/{self._started}",
            timeout_s=limit_s,
            idle_timeout_s=limit_s + 1,  # a gate may be silent: only its time limit counts
            sandbox=self.workplace.settings.sandbox.mode,  # type: ignore[arg-type]
            allowed=for_command(self.workplace, (gate.command,), path, door=door),
        )


def in_words(seconds: float) -> str:
    """A limit of time as the configuration writes it: 90s, 20m, 2h."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds >= length and seconds % length == 0:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


class _RawTail:
    """The end of a gate's output, kept as bytes and decoded once."""

    def __init__(self) -> None:
        self._raw = bytearray()

    def add(self, chunk: bytes) -> None:
        self._raw += chunk
        del self._raw[:-OUTPUT_KEPT]

    @property
    def text(self) -> str:
        return plain(printable(bytes(self._raw)))
