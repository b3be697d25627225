"""An engine that drives the members of a channel: a step a turn, spoken to, stopped, ended."""

import asyncio
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from crew.agents.adapter import Interrupt, Say
from crew.domain.channels.posts import posts_after
from crew.domain.kernel.errors import CrewError, NotFound
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome
from crew.domain.rules import Rules
from crew.domain.scope import Scope
from crew.domain.world import World, apply_all
from crew.runner.engine import Engine
from crew.runner.requests.waiting_readers import Readers

RULES = Rules(interrupt_grace_s=60.0)


class Stage:
    """An engine whose outside is the members of one channel; `act` is what they do in a step."""

    def __init__(self, act, **wishes):
        self.act, self.calls, self.vacated, self.now = act, [], [], 10.0
        self.start(World())
        members = [{"name": name, "agent_kind": "ann"} for name in ("pm", "dev")]
        wishes = {"topic": "hello", "rounds": 1, **wishes}
        self.ask("new", members=members, sender="ann", **wishes)

    def start(self, world):
        """A new life of the runner."""
        self.engine = Engine(
            outside=self,
            rules=RULES,
            epoch=1,
            world=world,
            store=apply_all,
            now=lambda: self.now,
            session_of=lambda whose: whose.session or f"s-{whose.id}-{whose.session_number}",
        )

    @property
    def world(self):
        return self.engine.world

    @property
    def texts(self):
        return [p.text for p in posts_after(self.world, self.world.channels["room"], 0)]

    def member(self, name):
        return self.world.members[f"room/{name}"]

    def ask(self, verb, **args):
        request = Request(verb=f"channel_{verb}", args={"channel": "room", **args})
        asked = answer(self.world, request, rules=RULES, at=self.now)
        self.engine.record(asked.facts)
        return asked.reply

    def say(self, text):
        self.ask("say", text=text, sender="ann")

    def play(self, until=None):
        """Until nothing more is due, or something is so."""

        async def played():
            async with asyncio.timeout(60):
                await self.engine.run(until=until or self.engine.is_quiet)
                await self.engine.shut_down()

        asyncio.run(played())

    async def speak(self, call):
        self.calls.append(call)
        return await self.act(self, call)

    def foresee(self, targets):
        """There is no task to make a worktree for."""

    async def vacate(self, member):
        self.vacated.append(member.id)


def _said(call, text, **more):
    return StepOutcome(session=call.member.session, text=text, **more)


async def _forever():
    await asyncio.Event().wait()


def test_members_speak_in_turn_in_their_own_sessions_with_what_they_have_not_seen():
    async def act(stage, call):
        return _said(call, f"I am {call.member.name} TURN_COMPLETE")

    stage = Stage(act, rounds=2)
    stage.play()
    assert stage.texts == ["hello", "I am pm", "I am dev", "I am pm", "I am dev"]
    given = [[post.text for post in call.posts] for call in stage.calls]
    assert given == [["hello"], ["hello", "I am pm"], ["I am dev"], ["I am pm"]]
    assert [call.resume for call in stage.calls] == [False, False, True, True]
    assert {call.member.session for call in stage.calls} == {"s-room/pm-0", "s-room/dev-0"}


def test_a_persons_word_reaches_the_running_step_and_is_not_given_again():
    async def act(stage, call):
        if call.member.name == "pm":
            stage.say("use the blue one")
            word = await call.controls.next()
            assert isinstance(word, Say)
            assert word.text == "#2 ann (a person):\n> use the blue one"
            call.heard(word.message)
            return _said(call, "blue it is")
        return _said(call, "")

    stage = Stage(act)
    stage.play()
    assert stage.texts == ["hello", "use the blue one", "blue it is"]
    assert [call.member.name for call in stage.calls] == ["pm", "dev"]
    assert stage.member("pm").acknowledged == 2


def test_a_person_who_interrupts_stops_a_step_that_can_hear_and_the_turn_goes_on():
    async def act(stage, call):
        if len(stage.calls) == 1:
            stage.say("stop")
            assert isinstance(await call.controls.next(), Interrupt)
            return _said(call, "half a")
        return _said(call, f"{call.member.name}: {call.posts[-1].text}")

    stage = Stage(act, interrupting="interrupt")
    stage.play()
    assert stage.texts[:4] == ["hello", "stop", "half a", "pm: stop"]
    assert [call.member.name for call in stage.calls] == ["pm", "pm", "dev"]
    assert [call.member.turn for call in stage.calls[:2]] == [1, 1]


def test_a_step_that_cannot_hear_an_interruption_is_ended():
    ended = []

    async def act(stage, call):
        if len(stage.calls) == 1:
            stage.say("stop")
            try:
                await _forever()
            finally:
                ended.append(call.member.name)
        return _said(call, "as you say")

    stage = Stage(act, interrupting="interrupt")
    stage.engine.rules = replace(RULES, interrupt_grace_s=0.05)
    stage.play()
    assert ended == ["pm"]
    assert stage.texts[:3] == ["hello", "stop", "as you say"]


def test_words_of_people_wait_for_the_end_of_the_turn_or_disturb_nobody():
    for mode, texts in (
        ("queue", ["hello", "I am pm", "by the way", "I am dev"]),
        ("parallel", ["hello", "by the way", "I am pm", "I am dev"]),
    ):

        async def act(stage, call):
            if len(stage.calls) == 1:
                stage.say("by the way")
            assert call.controls._queue.empty()
            return _said(call, f"I am {call.member.name}")

        stage = Stage(act, interrupting=mode)
        stage.play()
        assert stage.texts[:4] == texts


def test_a_runner_that_dies_in_a_turn_is_followed_by_one_that_takes_it_up_and_tells_nothing_twice():
    async def act(stage, call):
        if len(stage.calls) == 1:
            stage.engine.fail(RuntimeError("killed"))
            await _forever()
        return _said(call, f"I am {call.member.name}")

    stage = Stage(act)
    try:
        stage.play()
    except RuntimeError:
        stage.start(stage.world)
    stage.play()
    assert stage.texts == ["hello", "I am pm", "I am dev"]
    assert [(c.member.name, c.was_cut_off, c.resume) for c in stage.calls[:2]] == [
        ("pm", False, False),
        ("pm", True, True),
    ]
    assert [len(call.posts) for call in stage.calls[:2]] == [1, 0]


def test_what_goes_wrong_is_told_in_the_channel_and_the_runner_goes_on():
    async def act(stage, call):
        if call.member.name == "pm":
            raise CrewError("no agent is configured as 'ann'", hint="add it")
        error = StepError(kind=ErrorKind.CRASHED, message="it broke")
        return _said(call, "", error=error)

    stage = Stage(act, rounds=None)
    stage.play()
    assert stage.member("pm").state == stage.member("dev").state == "offline"
    assert stage.texts.count("⚠️ pm: no agent is configured as 'ann' (add it)") == 3
    assert stage.texts.count("⚠️ dev: it broke") == 3


def test_who_is_removed_in_its_turn_is_stopped_and_its_worktree_goes():
    ended = []

    async def act(stage, call):
        if call.member.name == "pm":
            stage.ask("remove", member="pm")
            try:
                await _forever()
            finally:
                ended.append("pm")
        return _said(call, "I am dev")

    stage = Stage(act)
    stage.play()
    assert (ended, stage.vacated) == (["pm"], ["room/pm"])
    assert stage.texts == ["hello", "I am dev"]
    stage.start(stage.world)
    stage.ask("close")
    stage.play()
    assert stage.vacated == ["room/pm", "room/dev"]


def test_who_is_assigned_again_after_a_crash_answers_what_it_was_asked_before():
    broken = [True]

    async def act(stage, call):
        if broken[0]:
            error = StepError(kind=ErrorKind.CRASHED, message="it broke")
            return _said(call, "", error=error)
        return _said(call, f"here is {call.member.name}")

    stage = Stage(act, rounds=None)
    stage.play()
    assert stage.member("pm").state == "offline"
    broken[0] = False
    stage.start(stage.world)
    stage.ask("assign", member="pm")
    stage.play()
    assert "here is pm" in stage.texts
    assert stage.calls[-1].was_cut_off


def test_who_is_assigned_again_while_its_worktree_goes_speaks_when_that_is_done():
    going = []

    async def act(stage, call):
        if call.member.name == "pm" and not going:
            stage.ask("remove", member="pm")
            await _forever()
        assert going != ["begun"], "it speaks in a worktree that is being removed"
        return _said(call, f"here is {call.member.name}")

    async def vacate(member):
        going.append("begun")
        stage.ask("assign", member="pm")
        for _ in range(20):
            await asyncio.sleep(0)
        going.append("done")

    stage = Stage(act, rounds=None)
    stage.vacate = vacate
    stage.play(until=lambda: "here is pm" in stage.texts)
    assert going == ["begun", "done"]


def test_a_turn_that_times_out_goes_on_without_its_member_whose_word_comes_late():
    other_speaks = asyncio.Event()

    async def act(stage, call):
        if call.member.name == "dev":
            other_speaks.set()
        else:
            stage.now += 60
            stage.engine.changed.set()
            await other_speaks.wait()
            return _said(call, "sorry")
        return _said(call, "I am dev")

    stage = Stage(act)
    stage.play()
    late = [(post.text, post.late) for post in stage.world.posts.values() if post.author == "agent"]
    assert sorted(late) == [("I am dev", False), ("sorry", True)]


def test_nothing_is_said_while_no_work_is_taken():
    async def act(stage, call):
        raise AssertionError

    stage = Stage(act)
    stage.engine.narrow(Scope(takes_work=False))
    stage.play()
    assert stage.calls == []


def test_only_the_channel_that_is_meant_is_driven():
    async def act(stage, call):
        raise AssertionError

    stage = Stage(act)
    stage.engine.narrow(Scope(channel="another"))
    stage.play()
    assert stage.calls == []


@pytest.mark.parametrize("wish", [10**400, -1, math.nan, math.inf])
def test_however_long_a_reader_wants_to_wait_it_is_answered(wish):
    asked = []

    def unknown(token):
        asked.append(token)
        raise NotFound("no such token", hint="ask for another one")

    nobody = SimpleNamespace(tokens=SimpleNamespace(member=unknown))
    request = Request(verb="channel_read", args={"waitSeconds": wish})
    asyncio.run(Readers(runner=nobody).patiently(request))
    assert asked == ([""] if wish > 0 else [])
