"""Runs the turns of a channel's members: a worktree of its own for each, its prompt, its CLI."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from crew.agents.adapter import StepOrder, Watch, adapter_for, remembers
from crew.config.prompts import prompt
from crew.domain.kernel.names import landed_ref
from crew.domain.rows.channel import Member, Post
from crew.domain.rows.step import StepOutcome
from crew.git.repository import ref_tip
from crew.git.worktrees.worktrees import ensure_detached, remove_worktree
from crew.runner.outside.outside import TurnCall
from crew.runner.prompts.mcp_connection import token_variables, url_variables
from crew.runner.prompts.step_orders import agent_settings, agent_spec, answer_first_questions
from crew.runner.requests.tokens import Tokens
from crew.runner.sandbox.confinement import with_rights
from crew.runner.views.step_log import start_step
from crew.workplace import Workplace

FOLDER = ".channel-"

LONGEST_CONVERSATION = 200_000
"""The longest conversation that one step gets: a session has room for it and an answer."""


@dataclass(frozen=True, slots=True)
class ChannelPlaces:
    workplace: Workplace

    async def speak(self, call: TurnCall, *, mcp_url: str) -> StepOutcome:
        """Run one step on the newest landed commit; the worktree is reset before it."""
        workplace, kind = self.workplace, call.member.agent_kind
        settings = agent_settings(workplace, kind)
        path = self.place(call.member)
        await asyncio.to_thread(
            ensure_detached, workplace.repo, path, self._newest(), kind=workplace.worktree_kind
        )
        order = self._order(call, path, mcp_url=mcp_url)
        if not order.resume:
            await asyncio.to_thread(answer_first_questions, workplace, kind, path)
        spec = agent_spec(workplace, settings, self._system_prompt(call))
        order = with_rights(workplace, order, settings)
        start_step(order.log, agent=order.agent, step=order.key.partition("/")[2])
        watch = Watch(started=lambda _pid: None, doing=lambda _words: None, heard=call.heard)
        return await adapter_for(spec).run_step(order, watch, call.controls)

    async def vacate(self, member: Member) -> None:
        path = self.place(member)
        if path.exists():
            await asyncio.to_thread(remove_worktree, self.workplace.repo, path)

    def place(self, member: Member) -> Path:
        """The member's worktree, the same for all turns: some CLIs find a session by its folder."""
        return self.workplace.worktrees / f"{FOLDER}{member.channel}.{member.name}"

    def _newest(self) -> str:
        repo, target = self.workplace.repo, self.workplace.target
        return ref_tip(repo, landed_ref(target)) or ref_tip(repo, f"refs/heads/{target}") or "HEAD"

    def _order(self, call: TurnCall, path: Path, *, mcp_url: str) -> StepOrder:
        workplace, member = self.workplace, call.member
        limits = workplace.settings.run
        return StepOrder(
            key=f"{workplace.repo_id}/channel/{member.id}/{member.attempt}",
            agent=member.name,
            kind=member.agent_kind,
            worktree=path,
            prompt=self._prompt(call),
            session=member.session,
            resume=call.resume,
            log=workplace.logs / f"channel-{member.channel}.{member.name}.log",
            timeout_s=limits.step_timeout_s,
            idle_timeout_s=limits.idle_timeout_s,
            env=self._environment(member, mcp_url=mcp_url),
            looks_only=True,
        )

    def _environment(self, member: Member, *, mcp_url: str) -> dict[str, str]:
        workplace = self.workplace
        return {
            "CREW_CHANNEL": member.channel,
            "CREW_ROLE": "member",
            "CREW_ROUND": str(member.turn),
            "CREW_STEP": str(member.steps),
            "CREW_REPO": str(workplace.root),
            "CREW_GIT_DIR": str(workplace.repo.common_dir),
            "CREW_LINKED": "",
            "CREW_BASE_BRANCH": workplace.target,
            "CREW_STATE_DIR": str(workplace.folder / "sessions"),
            **token_variables(workplace, Tokens(workplace.folder).member_token(member.id)),
            **url_variables(workplace, mcp_url),
        }

    def _system_prompt(self, call: TurnCall) -> str:
        channel, member = call.channel, call.member
        others = ", ".join(name for name in channel.members if name != member.name) or "none"
        common = prompt(
            "channel_system",
            agent=member.name,
            channel=channel.name,
            others=others,
            ending=_ending(),
        )
        vote = prompt("channel_council") if channel.council else ""
        own = agent_settings(self.workplace, member.agent_kind).system_prompt or ""
        return "\n".join(part for part in (common, vote, own) if part)

    def _prompt(self, call: TurnCall) -> str:
        adapter = agent_settings(self.workplace, call.member.agent_kind).adapter
        posts = call.posts if remembers(adapter) else call.before()
        said = conversation(posts)
        name = "channel_turn" if not call.was_cut_off else "channel_again"
        given = f"{call.member.acknowledged + 1} to {call.member.given}"
        return prompt(
            name,
            agent=call.member.name,
            channel=call.channel.name,
            messages=said or "(nothing new)",
            given=given,
            ending=_ending(),
        )


def _ending() -> str:
    return prompt("ending_member").strip()


def conversation(posts: Sequence[Post]) -> str:
    """Posts as text for an agent; if there are too many, the newest."""
    told = [post.shown for post in posts]
    sizes = accumulate(len(text) for text in reversed(told))
    count = max(1, sum(size <= LONGEST_CONVERSATION for size in sizes))
    if left_out := posts[:-count]:
        first, last, channel = left_out[0].sequence, left_out[-1].sequence, left_out[0].channel
        older = f"(#{first} to #{last} are left out here; `crew channel tail {channel}` shows them)"
        return "\n\n".join((older, *told[-count:]))
    return "\n\n".join(told)
