"""Prepares spare worktrees in the background, for tasks that wait for an agent.

They are optional: without a spare, a task gets its worktree the ordinary way. The reasons are in
`docs/decisions/007-spare-worktrees.md`.
"""

import asyncio
import logging
from dataclasses import dataclass, field

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.names import landed_ref
from crew.git.repository import ref_tip
from crew.git.worktrees import spare_worktrees
from crew.git.worktrees.spare_worktrees import Spare
from crew.workplace import Workplace

log = logging.getLogger(__name__)

MOST = 2
"""The most spares at one time: agents become free one after the other."""


@dataclass(slots=True, kw_only=True)
class Spares:
    """`_targets` are the targets of the tasks that start next; the first needs a spare at its tip.

    `_is_news`: targets or tips may have changed since the last check.
    """

    workplace: Workplace
    _targets: tuple[str, ...] = ()
    _is_news: bool = False
    _ready: list[Spare] = field(default_factory=list)
    _making: "asyncio.Task[None] | None" = None

    def foresee(self, targets: tuple[str, ...]) -> None:
        self._targets = targets[:MOST] if spare_worktrees.is_possible(self.workplace.repo) else ()
        self._is_news = bool(self._targets or self._ready)
        if self._is_news and (self._making is None or self._making.done()):
            self._making = asyncio.ensure_future(self._keep_ready())

    async def take(self, commit: str) -> Spare | None:
        """Take a spare and bring it to this commit; None if there is none."""
        if not self._ready:
            return None
        nearest = min(self._ready, key=lambda spare: spare.commit != commit)
        self._ready.remove(nearest)
        return await asyncio.to_thread(self._made, nearest, commit)

    def give_back(self, spare: Spare) -> None:
        self._ready.append(spare)

    async def end(self) -> None:
        """Make no more spares, and remove the unused ones."""
        self._targets = ()
        if self._making is not None:
            await asyncio.gather(self._making, return_exceptions=True)
        self._ready.clear()
        await asyncio.to_thread(self.tidy)

    def tidy(self) -> None:
        """Remove all spares, even those of another process."""
        spare_worktrees.drop_spares(self.workplace.worktrees)

    async def _keep_ready(self) -> None:
        """Make missing spares one by one; move an old one when its target has moved.

        Without waiting tasks all are removed, since a checkout can be large.
        """
        try:
            while self._is_news:
                self._is_news = False
                await self._make_lacking()
                await self._drop_unwanted()
        except (CrewError, OSError) as error:
            log.warning("no worktree is made ahead: %s", error)

    async def _make_lacking(self) -> None:
        while commit := await self._lacking():
            made = await asyncio.to_thread(self._made, self._stale(commit), commit)
            if made is not None:
                self._ready.append(made)

    async def _drop_unwanted(self) -> None:
        while self._ready and not self._targets:
            await asyncio.to_thread(spare_worktrees.drop_spare, self._ready.pop())

    async def _lacking(self) -> str | None:
        """The commit that needs a spare; only the next task's must be up to date."""
        tips = await asyncio.to_thread(self._tips, self._targets)
        is_next_there = any(spare.commit in tips[:1] for spare in self._ready)
        if not tips or (is_next_there and len(self._ready) >= len(tips)):
            return None
        return tips[0]

    def _tips(self, targets: tuple[str, ...]) -> list[str]:
        repo = self.workplace.repo
        refs = ((landed_ref(target), f"refs/heads/{target}") for target in targets)
        tips = (ref_tip(repo, landed) or ref_tip(repo, branch) for landed, branch in refs)
        return [tip for tip in tips if tip]

    def _stale(self, commit: str) -> Spare | None:
        """Take out a spare of another commit to move it; None if there is room for a new one."""
        others = [spare for spare in self._ready if spare.commit != commit]
        if not others or len(self._ready) < len(self._targets):
            return None
        self._ready.remove(others[0])
        return others[0]

    def _made(self, spare: Spare | None, commit: str) -> Spare | None:
        """Make a spare, or move this one to the commit; None if that fails."""
        repo = self.workplace.repo
        if spare is None:
            return spare_worktrees.make_spare(repo, self.workplace.worktrees, commit=commit)
        if spare.commit == commit:
            return spare
        return spare_worktrees.brought_to(repo, spare, commit=commit)
