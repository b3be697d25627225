"""A person who rewrites main at any moment, and what crew may then never do."""

import asyncio
import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from crew.domain.kernel.fact import Fact
from crew.domain.rows.task import TaskState
from crew.domain.world import World
from simulation.outside import CALM, State

SHARE = 0.3
"""How many histories have such a person; the others are as they were without."""

RATE = 0.06
"""How often main is rewritten in the middle of something that crew does with it."""

PERSONS = ("edit", "amended", "forced")


@dataclass(slots=True)
class Rewriter:
    """`removed` is a mask of commits, `lines` are the lines of tasks that main lost with them."""

    state: State
    chance: random.Random
    removed: int = 0
    lines: set[str] = field(default_factory=set)
    count: int = 0

    async def live(self) -> None:
        while True:
            await asyncio.sleep(self.chance.uniform(5, 120))
            self.rewrite()

    def maybe(self) -> None:
        """Called wherever crew is about to do something with main, or has just done it."""
        if self.state.faults is not CALM and self.chance.random() < RATE:
            self.rewrite()

    def rewrite(self) -> None:
        repo = self.state.repo
        old = repo.target
        parents = repo.commits[old].parents
        how = self.chance.choice(["reset", "reset", "amend", "edit", "squash", "forced"])
        if not parents:
            return
        earlier = self._earlier()
        files = dict(repo.commits[old].files)
        if how == "reset":
            repo.move_target(earlier)
        elif how == "amend":
            repo.move_target(repo.commit(files, parents, salt=f"amended {self.count}"))
        elif how == "squash":
            repo.move_target(repo.commit(files, (earlier,), salt=f"amended {self.count}"))
        else:
            if how == "forced":
                files = dict(repo.commits[earlier].files)
            files["person"] = files.get("person", frozenset()) | {f"forced {self.count}"}
            on = parents if how == "edit" else (earlier,)
            repo.move_target(repo.commit(files, on, salt=f"forced {self.count}"))
        self.count += 1
        self._note(old, repo.target)

    def _earlier(self) -> str:
        """One of the last commits on the first side of main."""
        repo, tip = self.state.repo, self.state.repo.target
        for _ in range(self.chance.choice([1, 1, 1, 2, 5])):
            parents = repo.commits[tip].parents
            tip = parents[0] if parents else tip
        return tip

    def _note(self, old: str, new: str) -> None:
        repo = self.state.repo
        gone = repo.commits[old].above & ~repo.commits[new].above
        self.removed |= gone
        self.lines |= task_lines(repo, old) - task_lines(repo, new)
        for commit in repo.commits.values():
            is_persons = commit.salt.startswith(("person", "amended", "forced", "by hand"))
            if is_persons and gone >> commit.number & 1:
                self.state.made &= ~(1 << commit.number)  # the person meant it

    def check(self, world: World, facts: Iterable[Fact]) -> None:
        """Nothing that a person removed returns; what is called dropped was removed."""
        repo = self.state.repo
        back = repo.commits[repo.target].above & self.removed
        assert not back, f"the removed commit c{back.bit_length() - 1} is in main again"
        again = task_lines(repo, repo.target) & self.lines
        assert not again, f"main has the removed lines again: {sorted(again)}"
        for fact in facts:
            is_dropped = (fact.kind, fact.trigger) == ("task", "dropped")
            if is_dropped and not world.tasks[fact.subject].quest:  # that has the lines of others
                assert own_line(world, fact.subject) & self.lines, "dropped, and nobody removed it"

    def check_end(self, world: World) -> None:
        """What was never delivered is not lost: its work is in main, or a person removed it."""
        lines = task_lines(self.state.repo, self.state.repo.target)
        for task in world.tasks.values():
            own = own_line(world, task.id)
            if task.state == TaskState.MERGED and task.target == "main" and not task.quest:
                assert own & lines or (own & self.lines and task.dropped_at), (
                    f"the work of task {task.id} is lost"
                )


def own_line(world: World, task: str) -> set[str]:
    return {f"line {task}", f"pair {task}"} if task in world.tasks else set()


def task_lines(repo, commit: str) -> set[str]:
    lines = {line for v in repo.commits[commit].files.values() for line in v}
    return {line for line in lines if line.startswith(("line ", "pair "))}
