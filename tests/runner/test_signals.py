"""A step that is spoken to: it ends once it has signalled, waits for leave, and hears messages."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crew.agents.adapter import Interrupt, Permission, Say
from crew.domain.kernel.errors import NeedsLogin
from crew.domain.merging.merge_reports import Tips
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.agent import Agent
from crew.domain.rows.run import Run
from crew.domain.rows.step import StepOutcome
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal
from crew.domain.rules import Rules
from crew.domain.runs.questions import LiveQuestion, permission_to
from crew.domain.world import World, apply_all, with_rows
from crew.front.mcp.tools_by_token import OFFERS
from crew.runner.engine import Engine
from crew.runner.outside.asking_watch import asking_watch
from crew.runner.outside.outside import StepCall
from crew.runner.requests import tokens as runner_tokens
from crew.runner.requests.tokens import Tokens

RULES = Rules(signal_grace_s=60.0)
Acting = Callable[["Stage", StepCall], Awaitable[StepOutcome]]


class Stage:
    """An engine whose outside is one agent; nothing else is asked of it."""

    def __init__(self, act: Acting, rules: Rules = RULES) -> None:
        self.act, self.calls, self.kept = act, 0, 0
        agent = Agent(id="A", agent_kind="ann", state="working", task="1", run="1.1")
        run = Run(id="1.1", task="1", agent="A", agent_kind="ann", state="working")
        task = Task(
            id="1", state="in_progress", written="in_progress", run="1.1", worktree="/w", target="m"
        )
        self.engine = Engine(
            outside=self,
            rules=rules,
            epoch=1,
            world=with_rows((agent, run, task)),
            store=apply_all,
            now=lambda: 10.0,
            session_of=lambda run: run.session or "s1",
        )

    @property
    def world(self) -> World:
        return self.engine.world

    @property
    def run(self) -> Run:
        return self.world.runs["1.1"]

    def ask(self, verb: str, **args):
        asked = answer(self.world, Request(verb=verb, args=args), rules=RULES, at=10.0)
        self.engine.record(asked.facts)
        return asked.reply

    def signal(self, **told) -> None:
        self.ask("signal", run="1.1", attempt=self.run.attempt, **told)

    def until_idle_or(self, is_over: Callable[[], bool]) -> None:
        async def play() -> None:
            async with asyncio.timeout(60):
                await self.engine.run(until=is_over)
                await self.engine.shut_down()

        asyncio.run(play())

    def foresee(self, targets):
        """Nothing is made ahead here."""

    async def has_worktree(self, task: Task) -> bool:
        return True

    async def tips(self, target: str) -> Tips:
        """Nobody delivers here."""
        return Tips(integration="", target="", has_target=False)

    async def clear_locks(self, task: Task) -> None:
        """Nobody was killed here."""

    async def checkpoint(self, task: Task, label: str, *, is_last: bool = False) -> None:
        self.kept += 1

    async def write_task(self, task: Task) -> None:
        """Nobody reads it here."""

    async def remove_worktree(self, task: Task) -> None:
        """There is none."""

    async def run_step(self, call: StepCall) -> StepOutcome:
        self.calls += 1
        return await self.act(self, call)


async def _forever() -> StepOutcome:
    await asyncio.Event().wait()
    raise AssertionError


def test_a_step_that_does_not_end_its_turn_after_a_signal_is_ended():
    ended = []

    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        stage.signal(signal="needs-user-input", question="Which one?")
        try:
            return await _forever()
        finally:
            ended.append(call.run.id)

    stage = Stage(act, Rules(signal_grace_s=0.05))
    stage.until_idle_or(lambda: stage.world.agents["A"].state == "idle")
    assert ended == ["1.1"]
    assert (stage.calls, stage.kept) == (1, 1)
    assert stage.run.question == "q1"
    assert stage.run.cost_usd is None  # it did not report any


def test_a_step_that_ends_its_turn_after_a_signal_is_waited_for():
    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        stage.signal(signal="complete", summary="s")
        await asyncio.sleep(0)
        return StepOutcome(session="s2")

    stage = Stage(act)
    stage.until_idle_or(lambda: stage.run.state == "reviewing")
    assert (stage.run.session, stage.kept) == ("s2", 1)


def test_a_step_that_ends_just_when_its_task_is_closed_leaves_no_question_behind():
    class ClosedWhileItsWorkIsKept(Stage):
        async def checkpoint(self, task: Task, label: str, *, is_last: bool = False) -> None:
            if not self.kept:
                self.ask("close", task="1")
            await super().checkpoint(task, label, is_last=is_last)

    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        stage.signal(signal="needs-user-input", question="Which one?")
        return StepOutcome(session="s1")

    stage = ClosedWhileItsWorkIsKept(act)
    stage.until_idle_or(lambda: not stage.engine.under_way)
    assert (stage.run.state, stage.world.agents["A"].state) == ("failed", "idle")
    assert stage.world.questions["q1"].state == "withdrawn"


def test_a_signal_that_was_recorded_before_a_crash_is_acted_on_without_a_call():
    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        raise AssertionError

    stage = Stage(act)
    died = replace(stage.run, stepping=True, signal="complete", step=1, attempt=1, session="s1")
    stage.engine.world = replace(stage.world, runs={"1.1": died})
    stage.until_idle_or(lambda: stage.run.state == "reviewing")
    assert (stage.calls, stage.kept, stage.run.attempt) == (0, 1, 1)


@pytest.mark.parametrize(
    ("said", "may"),
    [("yes", True), (" YES ", True), ("ok", True), ("no", False), ("", False), ("yes, but", False)],
)
def test_a_step_waits_for_leave_and_is_told_what_a_person_decided(said, may):
    heard = []

    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        asyncio.get_running_loop().call_soon(lambda: stage.ask("answer", question="q1", text=said))
        watch = asking_watch(call, log=Path(os.devnull), asks_permission=True)
        heard.append(await watch.asked(Permission(tool="rm", detail="everything")))
        return StepOutcome(session="s1", done=True)

    stage = Stage(act)
    stage.until_idle_or(lambda: stage.run.state == "reviewing")
    assert heard == [may]
    question = stage.world.questions["q1"]
    assert (question.state, question.about, question.context) == (
        "answered",
        "permission",
        "everything",
    )


def test_leave_that_nobody_gave_is_not_asked_for_after_the_step():
    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        asking = asyncio.ensure_future(call.asked(permission_to("rm", "everything")))
        await asyncio.sleep(0)
        asking.cancel()
        return StepOutcome(session="s1", done=True)

    stage = Stage(act)
    stage.until_idle_or(lambda: stage.run.state == "reviewing")
    assert stage.world.questions["q1"].state == "withdrawn"


def test_a_step_that_waits_too_long_is_interrupted_and_its_run_waits_without_it(monkeypatch):
    told = []

    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        asking = asyncio.ensure_future(call.asked(LiveQuestion(question="Which colour?")))
        told.append(await call.controls.next())
        asking.cancel()
        return StepOutcome(session="s1")

    stage = Stage(act, rules=replace(RULES, ask_patience_s=0.01))
    stage.until_idle_or(lambda: stage.run.agent is None)
    assert isinstance(told[0], Interrupt)
    assert (stage.run.question, stage.world.questions["q1"].state) == ("q1", "open")


def test_a_step_that_waits_for_a_person_does_not_hold_up_a_runner_that_stops():
    told = []

    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        asking = asyncio.ensure_future(call.asked(LiveQuestion(question="Which colour?")))
        asyncio.get_running_loop().call_soon(stage.engine.put_off_questions)
        told.append(await call.controls.next())
        asking.cancel()
        return StepOutcome(session="s1")

    stage = Stage(act)
    stage.until_idle_or(lambda: stage.run.agent is None)
    assert isinstance(told[0], Interrupt)
    assert stage.world.questions["q1"].state == "open"


def test_a_message_is_passed_on_to_the_step_under_way_and_read_when_that_ends_well():
    states = []

    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        stage.ask("message", task="1", sender="ann", text="mind the tests")
        word = await call.controls.next()
        assert isinstance(word, Say)
        states.append((word.text, stage.world.messages["m1"].state))
        call.heard(word.message)
        call.heard(word.message)
        states.append(stage.world.messages["m1"].state)
        return StepOutcome(session="s1", done=True)

    stage = Stage(act)
    stage.until_idle_or(lambda: stage.run.state == "reviewing")
    assert states == [("From ann (m1):\n> mind the tests", "queued"), "given"]
    assert stage.world.messages["m1"].state == "read"


def test_a_late_word_that_a_message_was_heard_changes_nothing():
    calls: list[StepCall] = []

    async def act(stage: Stage, call: StepCall) -> StepOutcome:
        calls.append(call)
        return StepOutcome(session="s1", done=True)

    stage = Stage(act)
    stage.until_idle_or(lambda: stage.run.state == "reviewing")
    stage.ask("message", task="1", sender="ann", text="too late")
    calls[0].heard("m1")
    assert stage.world.messages["m1"].state == "queued"


# Whose word it is


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path)


def test_a_token_proves_its_run_and_attempt_after_a_restart_too(tokens, tmp_path):
    token = tokens.token(Run(id="12.3", task="12", attempt=7))
    assert Tokens(tmp_path).owner(token) == ("12.3", 7)


def test_each_attempt_has_a_token_of_its_own_and_each_crew_a_secret_of_its_own(tokens, tmp_path):
    run = Run(id="1.1", task="1", attempt=1)
    (tmp_path / "other").mkdir()
    other = Tokens(tmp_path / "other")
    mine = {tokens.token(run), tokens.token(replace(run, attempt=2)), other.token(run)}
    assert len(mine) == 3
    with pytest.raises(NeedsLogin):
        other.owner(tokens.token(run))


@pytest.mark.parametrize("wrong", ["", "/", "1.1", "1.1/1", "1.1/1/", "1.1/1/0", "//x", "1.1/x/y"])
def test_what_crew_did_not_make_proves_nothing(tokens, wrong):
    with pytest.raises(NeedsLogin, match="not one of crew's"):
        tokens.owner(wrong)


def test_a_token_with_anything_changed_proves_nothing(tokens):
    token = tokens.token(Run(id="1.1", task="1", attempt=1))
    for changed in (
        token.replace("1.1", "2.1"),
        token.replace("/1/", "/2/"),
        token[:-1],
        f"{token}0",
    ):
        with pytest.raises(NeedsLogin):
            tokens.owner(changed)


def test_the_run_and_attempt_are_those_of_the_token_whatever_is_claimed(tokens):
    token = tokens.token(Run(id="1.1", task="1", attempt=1))
    claimed = {"token": token, "run": "9.9", "attempt": 5, "signal": "complete"}
    checked = tokens.checked(Request(verb="signal", args=claimed))
    assert checked.args == {"run": "1.1", "attempt": 1, "signal": "complete"}


def test_a_terminal_has_a_token_of_its_own_and_a_reviewer_one_that_only_reads(tokens):
    run = Run(id="1.1", task="1", attempt=1)
    claimed = {"run": "9.9", "attempt": 5, "terminal": 7, "review": True}
    terminal = {**claimed, "token": tokens.terminal_token(Terminal(id="1.1", task="1", number=2))}
    assert tokens.checked(Request(verb="signal", args=terminal)).args == {
        "run": "1.1",
        "terminal": 2,
    }
    reviewer = {**claimed, "token": tokens.review_token(run, "1-77-0-c0ffee")}
    assert tokens.checked(Request(verb="get_task", args=reviewer)).args == {
        "run": "1.1",
        "review": "1-77-0-c0ffee",
    }
    for verb in ("signal", "fetch_messages", "progress", "post_message", "plan_steps"):
        with pytest.raises(NeedsLogin, match="for a review"):
            tokens.checked(Request(verb=verb, args=reviewer))
    for args in (terminal, reviewer):
        with pytest.raises(NeedsLogin):
            tokens.owner(str(args["token"]))
        with pytest.raises(NeedsLogin):
            tokens.checked(Request(verb="channel_join", args=args))


def test_the_kinds_of_tokens_have_the_same_names_on_both_sides():
    kinds = (runner_tokens.MEMBER, runner_tokens.TERMINAL, runner_tokens.REVIEW, "")
    assert tuple(offer.begins for offer in OFFERS) == kinds


def test_what_people_ask_needs_no_token(tokens, tmp_path):
    request = Request(verb="spawn", args={"kind": "ann"})
    assert tokens.checked(request) is request
    assert not (tmp_path / "secret").exists()


def test_nobody_else_can_read_the_secret(tokens, tmp_path):
    tokens.token(Run(id="1.1", task="1"))
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["secret"]
