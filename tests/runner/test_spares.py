"""Worktrees made ahead follow their target, serve whoever comes, and do not outlive their use."""

import asyncio
import subprocess
import threading

import pytest

from crew.domain.commands import CommandKind
from crew.domain.rows.task import Task
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import apply_all, with_rows
from crew.git.repository import commit_of, ref_tip
from crew.git.worktrees.worktrees import remove_worktree, state_of
from crew.runner.engine import Engine
from crew.runner.outside import spare_pool as runner_spares
from crew.runner.outside.local_machine import LocalOutside
from crew.workplace import make_workplace
from git.people import Person
from runner.scene import PATIENCE_S, until


@pytest.fixture
def outside(make_scene):
    made = LocalOutside(make_workplace(make_scene().path))
    yield made
    made.workplace.db.close()


def _spares(outside):
    return sorted(outside.workplace.worktrees.glob(".spare-*"))


def _ready(outside):
    """Those whose files are all there."""
    return [spare.folder for spare in outside.spares._ready]


async def _made(outside, *, what):
    """Until the maker rests: it would make another for one that is taken while it still looks."""
    await _until(lambda: _ready(outside) and outside.spares._making.done(), what=what)


async def _until(condition, *, what):
    await asyncio.to_thread(until, condition, what=what)


def _commit(outside, name):
    root = outside.workplace.root
    (root / name).write_text("by a person\n")
    subprocess.run(["git", "add", name], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "-m", name], cwd=root, check=True)
    return commit_of(outside.workplace.repo, "main")


async def _worktree(outside, task, base):
    made = Task(id=task, target="main")
    return await outside.ensure_worktree(made, branch=f"crew-{task}", base=base)


def test_a_task_takes_the_spare_that_was_made_for_it(outside):
    async def story():
        base = commit_of(outside.workplace.repo, "main")
        outside.foresee(("main",))
        await _made(outside, what="a spare")
        (spare,) = outside.spares._ready
        inode = (spare.files / "readme.txt").stat().st_ino
        path = await _worktree(outside, "7", base)
        state = await asyncio.to_thread(
            state_of, outside.workplace.repo, outside.workplace.worktrees / "7"
        )
        assert (state.branch, state.head, state.changed) == ("crew-7", base, ())
        assert (outside.workplace.worktrees / "7" / "readme.txt").stat().st_ino == inode
        assert path == str(outside.workplace.worktrees / "7")
        assert _spares(outside) == []
        await outside.tidy()

    asyncio.run(story())


def test_whoever_starts_begins_on_the_newest_commit_although_the_spare_is_older(outside):
    async def story():
        outside.foresee(("main",))
        await _made(outside, what="a spare")
        newer = _commit(outside, "newer.txt")
        await _worktree(outside, "7", newer)
        path = outside.workplace.worktrees / "7"
        state = await asyncio.to_thread(state_of, outside.workplace.repo, path)
        assert (state.head, state.changed) == (newer, ())
        assert (path / "newer.txt").exists()
        await outside.tidy()

    asyncio.run(story())


def test_the_next_spare_is_brought_along_when_its_target_moves(outside):
    async def story():
        outside.foresee(("main", "main"))
        await _until(lambda: len(_ready(outside)) == 2, what="two spares")
        newer = _commit(outside, "newer.txt")
        outside.foresee(("main", "main", "main"))
        await _until(
            lambda: newer in [spare.commit for spare in outside.spares._ready],
            what="a spare at the newest commit",
        )
        assert len(_spares(outside)) == 2
        await outside.tidy()
        assert _spares(outside) == []

    asyncio.run(story())


def test_a_target_that_moves_just_when_it_was_looked_at_is_looked_at_again(outside, monkeypatch):
    looked, go_on = threading.Event(), threading.Event()

    def slow_look(repo, ref):
        tip = ref_tip(repo, ref)
        if tip and outside.spares._ready:
            looked.set()
            assert go_on.wait(PATIENCE_S)
        return tip

    async def story():
        monkeypatch.setattr(runner_spares, "ref_tip", slow_look)
        outside.foresee(("main",))
        await _until(looked.is_set, what="a look at the target of a spare that is there")
        newer = _commit(outside, "newer.txt")
        outside.foresee(("main",))
        go_on.set()
        await _until(
            lambda: [spare.commit for spare in outside.spares._ready] == [newer],
            what="a spare at the newest commit",
        )
        await outside.tidy()

    asyncio.run(story())


def test_none_is_kept_once_nobody_waits(outside):
    async def story():
        outside.foresee(("main",))
        await _made(outside, what="a spare")
        outside.foresee(())
        await _until(lambda: not _spares(outside), what="no spare")
        assert _ready(outside) == []
        await outside.tidy()

    asyncio.run(story())


def test_a_spare_that_was_not_needed_stays_for_the_next(outside):
    """The branch has work from an earlier life, so the worktree is made from that."""

    async def story():
        base = commit_of(outside.workplace.repo, "main")
        await _worktree(outside, "7", base)
        Person(outside.workplace.worktrees / "7").commit({"work.txt": "work\n"})
        remove_worktree(outside.workplace.repo, outside.workplace.worktrees / "7")
        outside.foresee(("main",))
        await _made(outside, what="a spare")
        await _worktree(outside, "7", base)
        assert len(_ready(outside)) == 1
        await outside.tidy()

    asyncio.run(story())


def test_a_target_that_does_not_exist_is_no_reason_to_stumble(outside):
    async def story():
        outside.foresee(("nowhere", "main"))
        await _until(lambda: len(_ready(outside)) == 1, what="a spare for the other one")
        base = commit_of(outside.workplace.repo, "main")
        assert [spare.commit for spare in outside.spares._ready] == [base]
        await outside.tidy()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("scope", "foreseen"),
    [
        (EVERYTHING, [("main",)]),
        (Scope(takes_work=False), []),  # it stops
        (Scope(kinds=frozenset({CommandKind.MERGE_QUEUE})), []),  # a short command
    ],
)
def test_only_a_runner_that_takes_work_has_something_made_ahead(scope, foreseen):
    asked = []

    class Stage:
        def foresee(self, targets):
            asked.append(targets)

    engine = Engine(
        outside=Stage(),
        rules=Rules(),
        epoch=1,
        world=with_rows([Task(id="1", target="main", written="todo")]),
        store=apply_all,
        now=lambda: 10.0,
        session_of=str,
        scope=scope,
    )
    asyncio.run(engine.run(until=lambda: True))
    assert asked == foreseen
