"""Reports what an agent tried through the door and may not do; its token proves which it is."""

import time
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.text import one_line
from crew.domain.requests import Request
from crew.domain.runs.suspicions import SuspiciousAct, suspected
from crew.runner.requests.tokens import GATE, MEMBER, REVIEW, SETUP, TERMINAL

if TYPE_CHECKING:
    from crew.runner.runner import Runner

REFUSED = "refused"
"""The request with which `crew` inside a sandbox reports a command that it refused."""


def report_refused(runner: "Runner", request: Request) -> None:
    """Record the attempt; a token that is not one of crew's proves nothing, and is not reported."""
    act = str(request.args.get("act", "")) if request.verb == REFUSED else ""
    tried = proven_act(
        runner,
        str(request.args["token"]),
        one_line(act) or f"the request {one_line(request.verb)}",
        context="crew refused it; it was tried through the agent door",
    )
    if tried is not None:
        runner.engine.record(suspected(runner.engine.world, tried, at=time.time()))


def proven_act(runner: "Runner", token: str, act: str, *, context: str) -> SuspiciousAct | None:
    """An act with the role, task and run that a token proves; None if it is not one of crew's."""
    try:
        name = runner.tokens.prove(token)
    except CrewError:
        return None
    return _act_of(runner, name, act, context)


def _act_of(runner: "Runner", name: str, act: str, context: str) -> SuspiciousAct:
    kinds = (MEMBER, TERMINAL, REVIEW, GATE, SETUP)
    kind = next((one for one in kinds if name.startswith(one)), "")
    if kind in {GATE, SETUP}:
        task = name.removeprefix(kind)
        known = task if task in runner.engine.world.tasks else ""
        role = kind.removesuffix(":")
        return SuspiciousAct(act=act, role=role, task=known, context=context)
    if kind == MEMBER:
        return SuspiciousAct(act=act, role=f"member {name.removeprefix(MEMBER)}", context=context)
    run = runner.engine.world.runs.get(name.removeprefix(kind).rpartition("/")[0])
    if run is None:
        return SuspiciousAct(act=act, role="agent", context=context)
    role = "reviewer" if kind == REVIEW else run.role or "worker"
    return SuspiciousAct(act=act, role=role, task=run.task, run=run.id, context=context)
