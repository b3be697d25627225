"""Who speaks: each attempt at a step has a token of its own, which proves what it may speak for."""

import contextlib
import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crew.domain.channels.member_requests import VERBS as MEMBER_VERBS
from crew.domain.kernel.errors import NeedsLogin
from crew.domain.requests import Request
from crew.domain.rows.run import Run
from crew.domain.rows.terminal import Terminal
from crew.system.crash_points import effect

VERBS = frozenset(
    {"signal", "fetch_messages", "progress", "get_task", "get_quest", "post_message", "plan_steps"}
)
"""What only the step itself may say."""


MEMBER = "channel:"
"""How the name in a member's token begins; the name of no run does."""

TERMINAL = "terminal:"
REVIEW = "review:"

READING = frozenset({"get_task"})
"""What a reviewer may ask: it reads its task and changes nothing."""

_PROVEN = frozenset({"token", "run", "attempt", "terminal", "review"})
"""What only a token says, whatever a request claims."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """Made from a secret of this crew, so that nothing but the secret need be kept."""

    folder: Path

    def token(self, run: Run) -> str:
        return self._signed(f"{run.id}/{run.attempt}")

    def terminal_token(self, terminal: Terminal) -> str:
        """For the agent in this terminal, and for no other terminal of its run."""
        return self._signed(f"{TERMINAL}{terminal.id}/{terminal.number}")

    def review_token(self, run: Run, commit: str) -> str:
        """For the reviewer of a run's commit."""
        return self._signed(f"{REVIEW}{run.id}/{commit}")

    def member_token(self, member: str) -> str:
        """For a member of a channel, whoever crew drives and whoever connects by itself."""
        return self._signed(f"{MEMBER}{member}")

    def prove(self, token: str) -> str:
        """What a token was made for; raises for one that is not crew's."""
        name, _, proof = token.rpartition("/")
        if not name or not hmac.compare_digest(proof.encode(), self._proof(name).encode()):
            raise NeedsLogin(
                "this token is not one of crew's",
                hint="use the CREW_TOKEN of your own environment, unchanged",
            )
        return name

    def owner(self, token: str) -> tuple[str, int]:
        """The run and the attempt that a token was made for."""
        name = self.prove(token)
        for kind in (MEMBER, TERMINAL, REVIEW):
            if name.startswith(kind):
                raise _of_another_kind(f"a {kind.removesuffix(':')}")
        run, _, attempt = name.rpartition("/")
        return run, int(attempt)

    def _speaker(self, token: str, verb: str) -> dict[str, Any]:
        """Whose word a request of this verb is: a step's, a terminal's or a reviewer's."""
        name = self.prove(token)
        kind = next((one for one in (TERMINAL, REVIEW) if name.startswith(one)), "")
        run, _, number = name.removeprefix(kind).rpartition("/")
        if kind == TERMINAL:
            return {"run": run, "terminal": int(number)}
        if kind == REVIEW and verb not in READING:
            raise _of_another_kind("a review")
        if kind == REVIEW:
            return {"run": run, "review": True}
        run, attempt = self.owner(token)
        return {"run": run, "attempt": attempt}

    def member(self, token: str) -> str:
        """The member of a channel that a token was made for."""
        name = self.prove(token)
        if not name.startswith(MEMBER):
            raise _of_another_kind("a step")
        return name.removeprefix(MEMBER)

    def checked(self, request: Request) -> Request:
        """A request of a step or a member, with who its token proves it to be."""
        if request.verb not in VERBS | MEMBER_VERBS.keys():
            return request
        token = str(request.args.get("token", ""))
        others = {key: value for key, value in request.args.items() if key not in _PROVEN}
        if request.verb in MEMBER_VERBS:
            return Request(verb=request.verb, args={**others, "member": self.member(token)})
        return Request(verb=request.verb, args={**others, **self._speaker(token, request.verb)})

    def _signed(self, name: str) -> str:
        return f"{name}/{self._proof(name)}"

    def _proof(self, name: str) -> str:
        return hmac.new(self._secret(), name.encode(), hashlib.sha256).hexdigest()

    def _secret(self) -> bytes:
        file = self.folder / "secret"
        if not file.exists():
            _make_secret(file)
        return file.read_bytes()


def _of_another_kind(what: str) -> NeedsLogin:
    return NeedsLogin(
        f"this token is for {what}, and that has other tools",
        hint="use the tools that are listed for this token",
    )


@effect("runner.make_secret")
def _make_secret(file: Path) -> None:
    """Whole or not at all; of two that are made at once, one wins."""
    fresh = file.with_name(f".secret.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(handle, secrets.token_bytes(32))
    finally:
        os.close(handle)
    with contextlib.suppress(FileExistsError):
        os.link(fresh, file)
    fresh.unlink()
