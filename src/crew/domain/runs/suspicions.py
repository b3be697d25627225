"""Suspicious acts: how any part of crew reports one, and how a person dismisses it.

A part of the runner records `suspected(world, act, at=…)`; another process sends the request
`suspect`. Either way, the only consequence is an entry in the inbox.
"""

from collections.abc import Mapping

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Answer, Asked, Verb, typed
from crew.domain.rows.question import Suspicion, SuspicionState
from crew.domain.runs.questions import AnswerQuestion
from crew.domain.world import World, born, moved, noted

MOST_COUNTED = 100
"""An agent that tries again and again must not fill the log of facts."""

MOST_HOSTS = 20
"""The hosts that are recorded for one task: enough to learn what its programs need."""

CONNECT = "to connect to "
"""How the act begins when a program wants a host that the configuration does not list."""

LONGEST_ACT, LONGEST_CONTEXT = 80, 1_000


@frozen
class SuspiciousAct:
    """What was tried, by which role of which run; `task` and `run` are empty if unknown."""

    act: str
    role: str = ""
    task: str = ""
    run: str = ""
    context: str = ""


def suspected(world: World, tried: SuspiciousAct, *, at: float) -> tuple[Fact, ...]:
    """Record an act: a new entry of the inbox, or one more of the same act of the same run."""
    act, context = tried.act[:LONGEST_ACT], tried.context[:LONGEST_CONTEXT]
    known = _find(world, tried.run, tried.task, act)
    if known is None:
        new = Suspicion(
            id=f"s{len(world.suspicions) + 1}",
            task=tried.task,
            run=tried.run,
            role=tried.role or "worker",
            act=act,
            context=context,
            first_at=at,
            last_at=at,
        )
        return (born(new, "suspected", at=at),)
    if known.count >= MOST_COUNTED:
        return ()
    return (noted(known, "suspected_again", at=at, count=known.count + 1, last_at=at),)


def unlisted_host(world: World, tried: SuspiciousAct, *, at: float) -> tuple[Fact, ...]:
    """Record that a program wanted a host that is not listed: each host once for each task."""
    known = {
        one.act
        for one in world.suspicions.values()
        if one.task == tried.task and one.act.startswith(CONNECT)
    }
    is_known = tried.act[:LONGEST_ACT] in known
    return () if is_known or len(known) >= MOST_HOSTS else suspected(world, tried, at=at)


def _find(world: World, run: str, task: str, act: str) -> Suspicion | None:
    found = (
        one
        for one in world.suspicions.values()
        if (one.run, one.act) == (run, act) and (run or one.task == task)
    )
    return next(found, None)


def dismiss(asked: Asked[AnswerQuestion], suspicion: Suspicion) -> Answer:
    """Dismiss an entry with the words of a person."""
    if not suspicion.is_open:
        raise Conflict(
            f"suspicion {suspicion.id} is {suspicion.state}",
            hint="`crew inbox` lists what is open",
            code="suspicion_closed",
        )
    state, text = SuspicionState.DISMISSED, asked.request.text[:LONGEST_CONTEXT]
    fact = moved(suspicion, "dismissed", to=state, at=asked.at, answer=text)
    return Answer(facts=(fact,), reply=suspicion.id)


def _suspect(asked: Asked[SuspiciousAct]) -> Answer:
    return Answer(facts=suspected(asked.world, asked.request, at=asked.at), reply="reported")


VERBS: Mapping[str, Verb] = {"suspect": typed(SuspiciousAct, _suspect)}
