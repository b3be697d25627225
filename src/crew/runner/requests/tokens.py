"""Makes and checks tokens: each step, terminal, review and member has one that proves who it is."""

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
from crew.system.foreign_files import NotBelieved, read_foreign, set_aside
from crew.system.private_files import open_private

VERBS = frozenset(
    {
        *("signal", "fetch_messages", "progress", "get_task", "get_quest", "post_message"),
        *("plan_steps", "comment"),
    }
)
"""The requests that only a step itself may send."""


MEMBER = "channel:"
"""The beginning of the name in a member's token; no run's name begins like this."""

TERMINAL = "terminal:"
REVIEW = "review:"
GATE, SETUP = "gate:", "setup:"
"""These tokens allow no request: with them, crew reports what the code of a command tried."""

READING = frozenset({"get_task"})
"""The requests that a reviewer may send: it reads its task and changes nothing."""

_PROVEN = frozenset({"token", "run", "attempt", "terminal", "review"})
"""The arguments that only a token may set; those of a request are ignored."""


_LONGEST_SECRET = 4_096


@dataclass(frozen=True, slots=True)
class Tokens:
    """Makes tokens from the crew's secret, so that only the secret is stored."""

    folder: Path

    def token(self, run: Run) -> str:
        return self._signed(f"{run.id}/{run.attempt}")

    def terminal_token(self, terminal: Terminal) -> str:
        """A token for the agent in this terminal, not for other terminals of its run."""
        return self._signed(f"{TERMINAL}{terminal.id}/{terminal.number}")

    def review_token(self, run: Run, review: str) -> str:
        """A token for the reviewer of a run's commit; `review` is the name of this one review."""
        return self._signed(f"{REVIEW}{run.id}/{review}")

    def member_token(self, member: str) -> str:
        """A token for a member of a channel, whether crew drives it or it connects by itself."""
        return self._signed(f"{MEMBER}{member}")

    def gate_token(self, task: str) -> str:
        """A token for the gate of a task, or of several tasks if the name is empty."""
        return self._signed(f"{GATE}{task}")

    def setup_token(self, task: str) -> str:
        """A token for the setup commands of a task's worktree, or of a gate's."""
        return self._signed(f"{SETUP}{task}")

    def prove(self, token: str) -> str:
        """The name that a token was made for; raises if the token is not crew's."""
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
        for kind in (MEMBER, TERMINAL, REVIEW, GATE, SETUP):
            if name.startswith(kind):
                raise _of_another_kind(f"a {kind.removesuffix(':')}")
        run, _, attempt = name.rpartition("/")
        return run, int(attempt)

    def _speaker(self, token: str, verb: str) -> dict[str, Any]:
        """The arguments that identify the sender: a step, a terminal or a reviewer."""
        name = self.prove(token)
        kind = next((one for one in (TERMINAL, REVIEW) if name.startswith(one)), "")
        run, _, number = name.removeprefix(kind).rpartition("/")
        if kind == TERMINAL:
            return {"run": run, "terminal": int(number)}
        if kind == REVIEW and verb not in READING:
            raise _of_another_kind("a review")
        if kind == REVIEW:
            return {"run": run, "review": number}
        run, attempt = self.owner(token)
        return {"run": run, "attempt": attempt}

    def member(self, token: str) -> str:
        """The member of a channel that a token was made for."""
        name = self.prove(token)
        if not name.startswith(MEMBER):
            raise _of_another_kind("a step")
        return name.removeprefix(MEMBER)

    def checked(self, request: Request) -> Request:
        """A request of a step or a member, with the sender that its token proves."""
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
        try:
            return read_foreign(file, max_bytes=_LONGEST_SECRET, is_own=True)
        except FileNotFoundError:
            _make_secret(file)
        except NotBelieved:  # a secret that another process chose proves nothing
            set_aside(file)
            _make_secret(file)
        return file.read_bytes()


def _of_another_kind(what: str) -> NeedsLogin:
    return NeedsLogin(
        f"this token is for {what}, and that has other tools",
        hint="use the tools that are listed for this token",
    )


@effect("runner.make_secret")
def _make_secret(file: Path) -> None:
    """Make the secret, complete or not at all; if two processes make one, the first wins."""
    fresh = file.with_name(f".secret.{os.getpid()}")
    handle = open_private(fresh, os.O_WRONLY | os.O_TRUNC)
    try:
        os.write(handle, secrets.token_bytes(32))
    finally:
        os.close(handle)
    with contextlib.suppress(FileExistsError):
        os.link(fresh, file)
    fresh.unlink()
