"""Doers of channels: run one turn of a member, and remove the worktree of one that left."""

from collections.abc import Mapping

from crew.agents.adapter import Interrupt
from crew.domain.channels.member_outcomes import heard, turn_spoken, turn_started, vacated
from crew.domain.channels.posts import posts_after, unseen
from crew.domain.commands import Command, SpeakTurn, Vacate
from crew.domain.kernel.fact import Fact
from crew.domain.rows.step import StepOutcome
from crew.runner.doers.context import Context, Doer
from crew.runner.doers.cut_short import outcome_of
from crew.runner.outside.outside import TurnCall


async def speak_turn(ctx: Context, command: Command) -> list[Fact]:
    """Run one turn; its start and the posts that it gets are recorded before the process exists."""
    before = ctx.world().members[command.subject]
    posts = tuple(unseen(ctx.world(), before))
    session = ctx.session_of(before)
    ctx.record(turn_started(ctx.world(), before, session=session, at=ctx.now()))
    member = ctx.world().members[command.subject]
    channel = ctx.world().channels[member.channel]
    call = TurnCall(
        channel=channel,
        member=member,
        posts=posts,
        before=lambda: tuple(posts_after(ctx.world(), channel, 0)),
        was_cut_off=before.owes_answer,
        resume=before.session_used or before.speaking,
        heard=lambda post: _heard(ctx, member.id, post),
        controls=ctx.controls(member.id),
    )
    outcome = await _until_it_ends(ctx, call)
    return turn_spoken(
        ctx.world(), member.id, outcome, turn=member.turn, rules=ctx.rules, at=ctx.now()
    )


async def _until_it_ends(ctx: Context, call: TurnCall) -> StepOutcome:
    """Run the turn until it ends; an interrupt asks it to stop and ends it after a grace period."""
    return await outcome_of(
        ctx.outside.speak(call),
        stopped_by=ctx.interrupted(call.member.id),
        grace_s=ctx.rules.interrupt_grace_s,
        session=call.member.session,
        stop=lambda: call.controls.send(Interrupt()),
    )


def _heard(ctx: Context, member: str, post: str) -> None:
    sequence = ctx.world().posts[post].sequence
    ctx.record(heard(ctx.world().members[member], sequence, at=ctx.now()))


async def vacate(ctx: Context, command: Command) -> list[Fact]:
    """Remove a member's worktree; if a person assigns it again, it still owes its answer."""
    member = ctx.world().members[command.subject]
    await ctx.cancel(SpeakTurn(subject=member.id).key)
    await ctx.outside.vacate(member)
    left = ctx.world().members[command.subject]
    return vacated(left, at=ctx.now())


CHANNEL_DOERS: Mapping[type[Command], Doer] = {SpeakTurn: speak_turn, Vacate: vacate}
