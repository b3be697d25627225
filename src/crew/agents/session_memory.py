"""Stores a CLI's own session name and its used tokens from step to step.

Such a CLI names its sessions itself and counts usage from their start. The name is stored at once,
so that a session survives a crew that dies in its first step. The usage is stored after each step,
so that the usage of a killed step is counted with the next one.
"""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from crew.agents.adapter import StepOrder
from crew.agents.event_fields import count_of, number_of, session_name
from crew.agents.terminal.terminal_script import put_file
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.step import Usage


@frozen
class SessionMemory:
    """The memory of one kind of CLI, next to the logs of its steps."""

    cli: str
    folder: Path

    def name_for(self, session: str) -> str:
        """The CLI's name for a session that crew calls `session`. Often they are equal."""
        return session_name(self._recall(session), "name") or session

    def keep_name(self, session: str, name: str) -> None:
        if name and name != session:
            self._keep(session, {"name": name})

    def used_since(self, name: str, total: Usage) -> Usage:
        """The usage since the stored total, which the new total replaces.

        A total below the stored one means that the CLI started to count from 0 again.
        """
        known = self._recall(name)
        before = number_of(known, "cost_usd") if "input" in known else 0.0
        tokens = (total.input_tokens, total.output_tokens, total.cost_usd)
        self._keep(name, dict(zip(("input", "output", "cost_usd"), tokens, strict=True)))
        return Usage(
            input_tokens=int(_grown(total.input_tokens, count_of(known, "input"))),
            output_tokens=int(_grown(total.output_tokens, count_of(known, "output"))),
            cost_usd=None
            if total.cost_usd is None or before is None
            else _grown(total.cost_usd, before),
        )

    def _recall(self, session: str) -> dict[str, Any]:
        try:
            stored: Any = json.loads(self._file(session).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return stored if isinstance(stored, dict) else {}

    def _keep(self, session: str, values: dict[str, Any]) -> None:
        # A failure costs little: the next step starts a new session or counts usage twice.
        with contextlib.suppress(OSError):
            put_file(self._file(session), json.dumps(values), mode=0o600)

    def _file(self, session: str) -> Path:
        digest = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]
        return self.folder / f"{self.cli}-{digest}.json"


def session_memory(cli: str, order: StepOrder) -> SessionMemory:
    return SessionMemory(cli=cli, folder=order.log.parent / "sessions")


def _grown(total: float, before: float) -> float:
    return total - before if total >= before else total
