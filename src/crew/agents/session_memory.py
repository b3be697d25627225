"""What is known of a CLI's own session from step to step: its name there, and what it has used.

Such a CLI names its sessions itself and counts from their beginning. The name is kept as soon as it
is told, so that a session survives a crew that dies in its first step; the count is kept after each
step, so that what a killed step used is paid with the next one.
"""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

from crew.agents.adapter import StepOrder
from crew.agents.event_stream import count_of, number_of, session_name
from crew.agents.terminal.terminal_script import put_file
from crew.domain.kernel.frozen import frozen
from crew.domain.rows.step import Usage


@frozen
class SessionMemory:
    """The memory of one kind of CLI, beside the logs of its steps."""

    cli: str
    folder: Path

    def name_for(self, session: str) -> str:
        """The CLI's name for a session that crew calls `session`; often they are the same."""
        return session_name(self._recall(session), "name") or session

    def keep_name(self, session: str, name: str) -> None:
        if name and name != session:
            self._keep(session, {"name": name})

    def used_since(self, name: str, total: Usage) -> Usage:
        """What was used since the total that is known, which the new one replaces.

        A total below the known one means that the CLI began to count anew.
        """
        known = self._recall(name)
        tokens = (total.input_tokens, total.output_tokens, total.cost_usd)
        self._keep(name, dict(zip(("input", "output", "cost_usd"), tokens, strict=True)))
        return Usage(
            input_tokens=int(_grown(total.input_tokens, count_of(known, "input"))),
            output_tokens=int(_grown(total.output_tokens, count_of(known, "output"))),
            cost_usd=None
            if total.cost_usd is None
            else _grown(total.cost_usd, number_of(known, "cost_usd") or 0.0),
        )

    def _recall(self, session: str) -> dict[str, Any]:
        try:
            told: Any = json.loads(self._file(session).read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}

    def _keep(self, session: str, values: dict[str, Any]) -> None:
        # What cannot be kept is not known next time: a new session then, or a step paid twice.
        with contextlib.suppress(OSError):
            put_file(self._file(session), json.dumps(values), mode=0o600)

    def _file(self, session: str) -> Path:
        digest = hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:32]
        return self.folder / f"{self.cli}-{digest}.json"


def session_memory(cli: str, order: StepOrder) -> SessionMemory:
    return SessionMemory(cli=cli, folder=order.log.parent / "sessions")


def _grown(total: float, before: float) -> float:
    return total - before if total >= before else total
