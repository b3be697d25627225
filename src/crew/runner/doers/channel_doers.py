"""do, for channels: let a driven member speak once, and clear up after one that left."""

import asyncio
from collections.abc import Mapping

from crew.agents.adapter import Interrupt
from crew.domain.channels.member_outcomes import heard, turn_spoken, turn_started
from crew.domain.channels.posts import posts_after, unseen
from crew.domain.commands import Command, SpeakTurn, Vacate
from crew.domain.kernel.fact import Fact
from crew.domain.rows.step import StepOutcome
from crew.domain.world import noted
from crew.runner.doers.context import Desk, Doer
from crew.runner.outside.outside import TurnCall


async def speak_turn(desk: Desk, command: Command) -> list[Fact]:
    """The start is recorded before the process exists, with all that the member is given."""
    before = desk.world().members[command.subject]
    posts = tuple(unseen(desk.world(), before))
    session = desk.session_of(before)
    desk.record(turn_started(desk.world(), before, session=session, at=desk.now()))
    member = desk.world().members[command.subject]
    channel = desk.world().channels[member.channel]
    call = TurnCall(
        channel=channel,
        member=member,
        posts=posts,
        before=lambda: tuple(posts_after(desk.world(), channel, 0)),
        was_cut_off=before.owes_answer,
        resume=before.session_used or before.speaking,
        heard=lambda post: _heard(desk, member.id, post),
        controls=desk.controls(member.id),
    )
    outcome = await _until_it_ends(desk, call)
    return turn_spoken(
        desk.world(), member.id, outcome, turn=member.turn, rules=desk.rules, at=desk.now()
    )


async def _until_it_ends(desk: Desk, call: TurnCall) -> StepOutcome:
    """A person may interrupt it: it is told to stop, and ended when it cannot hear that."""
    interrupted = asyncio.ensure_future(desk.interrupted(call.member.id))
    running = asyncio.ensure_future(desk.outside.speak(call))
    try:
        await asyncio.wait({running, interrupted}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            call.controls.tell(Interrupt())
            await asyncio.wait({running}, timeout=desk.rules.interrupt_grace_s)
        return running.result() if running.done() else StepOutcome(session=call.member.session)
    finally:
        interrupted.cancel()
        running.cancel()
        await asyncio.gather(running, interrupted, return_exceptions=True)


def _heard(desk: Desk, member: str, post: str) -> None:
    sequence = desk.world().posts[post].sequence
    desk.record(heard(desk.world().members[member], sequence, at=desk.now()))


async def vacate(desk: Desk, command: Command) -> list[Fact]:
    """What it was given and did not answer it still owes, should somebody assign it again."""
    member = desk.world().members[command.subject]
    await desk.cancel(SpeakTurn(subject=member.id).key)
    await desk.outside.vacate(member)
    left = desk.world().members[command.subject]
    return [noted(left, "vacated", at=desk.now(), housed=False, speaking=False)]


CHANNEL_DOERS: Mapping[type[Command], Doer] = {SpeakTurn: speak_turn, Vacate: vacate}
