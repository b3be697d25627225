"""Reports what an agent tried through the door and may not do; its token proves which it is."""

import time
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.text import one_line
from crew.domain.requests import Request
from crew.domain.runs.suspicions import SuspiciousAct, suspected
from crew.runner.requests.tokens import GATE, MEMBER, REVIEW, TERMINAL

if TYPE_CHECKING:
    from crew.runner.runner import Runner

REFUSED = "refused"
"""The request with which `crew` inside a sandbox reports a command that it refused."""


def report_refused(runner: "Runner", request: Request) -> None:
    """Record the attempt; a token that is not one of crew's proves nothing, and is not reported."""
    try:
        name = runner.tokens.prove(str(request.args["token"]))
    except CrewError:
        return
    act = str(request.args.get("act", "")) if request.verb == REFUSED else ""
    tried = _act_of(runner, name, one_line(act) or f"the request {one_line(request.verb)}")
    runner.engine.record(suspected(runner.engine.world, tried, at=time.time()))


def _act_of(runner: "Runner", name: str, act: str) -> SuspiciousAct:
    kind = next((one for one in (MEMBER, TERMINAL, REVIEW, GATE) if name.startswith(one)), "")
    context = "crew refused it; it was tried through the agent door"
    if kind == GATE:
        task = name.removeprefix(GATE)
        known = task if task in runner.engine.world.tasks else ""
        return SuspiciousAct(act=act, role="gate", task=known, context=context)
    if kind == MEMBER:
        return SuspiciousAct(act=act, role=f"member {name.removeprefix(MEMBER)}", context=context)
    run = runner.engine.world.runs.get(name.removeprefix(kind).rpartition("/")[0])
    if run is None:
        return SuspiciousAct(act=act, role="agent", context=context)
    role = "reviewer" if kind == REVIEW else run.role or "worker"
    return SuspiciousAct(act=act, role=role, task=run.task, run=run.id, context=context)
