"""Random histories of a channel, told to crew and to an independent model of the seed.

After every step: at most one active member, the states, the queue and what was said are those of
the model, nobody who waits is passed over for long, and no message is lost or comes twice. Crew is
killed in between: it goes on with what a real store kept.
"""

import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from crew.domain.channels.member_requests import awake
from crew.domain.channels.posts import has_news
from crew.domain.kernel.errors import CrewError
from crew.domain.world import World, fold, noted
from crew.store.database import open_database
from crew.store.fact_log import load_world, record
from domain.channel_model import HEARTBEAT, TIMEOUT, WAIT_LIMIT, Model, Refused
from domain.rooms import Room

NAMES = ("a", "b", "c", "d")
STEPS = 20
names = st.sampled_from(NAMES)


class Histories(RuleBasedStateMachine):
    """What people and agents do, in any order."""

    @initialize(mode=st.sampled_from(["queue", "interrupt", "inject", "parallel"]))
    def open(self, mode):
        self.room = Room(
            interrupting=mode,
            timeout_s=TIMEOUT,
            wait_timeout_s=WAIT_LIMIT,
            heartbeat_s=HEARTBEAT,
            announces_timeouts=False,
            announces_disconnects=False,
        )
        self.model = Model(mode=mode, now=self.room.now)
        self.got = {name: [] for name in NAMES}
        self.passed_over = dict.fromkeys(NAMES, 0)
        self.turns = {}
        self.number = 0
        self.stored = 0
        self.folder = None

    def teardown(self):
        if hasattr(self, "room"):
            self._check_all_arrives()
        if getattr(self, "folder", None):
            self.folder.cleanup()

    @rule(name=names)
    def comes(self, name):
        if name not in self.model.agents:
            self._both("assign", name, lambda: self.room.ask("assign", member=name))
        self._both("start", name, lambda: self.room.by(name, "join"))

    @rule(name=names)
    def is_assigned(self, name):
        self._both("assign", name, lambda: self.room.ask("assign", member=name))

    @rule(name=names)
    def is_removed(self, name):
        if name in self.model.agents:
            self._both("remove", name, lambda: self.room.ask("remove", member=name))

    @rule(name=names, back=st.booleans())
    def is_disabled_or_enabled(self, name, back):
        if name in self.model.agents:
            verb = "enable" if back else "disable"
            self._both(verb, name, lambda: self.room.ask(verb, member=name))

    @rule(name=names, complete=st.booleans(), out_of_turn=st.integers(0, 3))
    def speaks(self, name, complete, out_of_turn):
        name = name if out_of_turn == 0 else self.model.holder or name
        text = self._text()
        said = f"{text} TURN_COMPLETE" if complete else text
        self._both(
            "say", name, lambda: self._heard(name, "post", text=said), text, complete=complete
        )

    @rule(name=names, out_of_turn=st.integers(0, 3))
    def completes(self, name, out_of_turn):
        name = name if out_of_turn == 0 else self.model.holder or name
        self._both("complete", name, lambda: self.room.by(name, "turn_complete"))

    @rule(name=names, seconds=st.sampled_from([10.0, 1000.0]))
    def waits(self, name, seconds):
        name = self.model.holder or name
        self._both("wait", name, lambda: self.room.by(name, "wait", seconds=seconds), seconds)

    @rule(name=names)
    def has_waited(self, name):
        name = self.model.holder or name
        self._both("resolve", name, lambda: self.room.by(name, "wait", over=True))

    @rule(name=names)
    def reads(self, name):
        self._both("read", name, lambda: self._heard(name, "read"))

    @rule(name=names, to=st.sampled_from(["queued", "active"]))
    def is_overridden(self, name, to):
        if name in self.model.agents:
            deed = lambda: self.room.ask("override", member=name, state=to)  # noqa: E731
            self._both("override", name, deed, to.upper())
            self.passed_over = dict.fromkeys(NAMES, 0)  # as a person wished

    @rule()
    def a_person_speaks(self):
        text = self._text()
        self.model.human(text)
        self.room.say(text)

    @rule(seconds=st.sampled_from([1.0, 35.0, 61.0, 130.0]), alive=st.sets(names))
    def time_passes(self, seconds, alive):
        """Some are alive all the while and say so, often enough."""
        before = dict(self.room.states)
        for name in alive & before.keys():
            if before[name] != "offline":
                self.model.agents[name].beat = self.room.now + seconds
                self.room.record(_beat(self.room, name, self.room.now + seconds))
        self.room.tick(seconds)
        gone = {n for n in before if before[n] != "offline" and self.room.states[n] == "offline"}
        for name, agent in self.model.agents.items():
            silent_for = self.room.now - agent.beat
            if before[name] != "offline":
                assert name in gone or silent_for < HEARTBEAT, f"{name} was not missed"
                assert name not in gone or silent_for >= HEARTBEAT * 3 / 4, f"{name} was there"
        self.model.pass_time(seconds, gone)

    @rule()
    def crew_is_killed(self):
        """What a real store kept of it is what it goes on with."""
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory()
        with closing(open_database(Path(self.folder.name) / "crew.db")) as db:
            known = load_world(db) if self.stored else World()
            record(db, known, self.room.facts[self.stored :])
            self.stored = len(self.room.facts)
        with closing(open_database(Path(self.folder.name) / "crew.db")) as db:
            self.room.world = load_world(db)

    @invariant()
    def crew_and_the_model_agree(self):
        if not hasattr(self, "room"):
            return
        room, model = self.room, self.model
        assert len(room.active) <= 1
        assert {name: state.upper() for name, state in room.states.items()} == {
            name: agent.state for name, agent in model.agents.items()
        }
        assert list(room.channel.queue) == model.queue
        assert (room.channel.holder or None) == model.holder
        assert [(post.sender, post.text) for post in room.posts] == model.said
        if model.queue:
            assert model.holder, "somebody waits, and nobody has the turn"

    def _both(self, deed, name, ours, *args, **more):
        """The same to both; what one refuses, the other must refuse too."""
        refused = not self._model_does(deed, name, *args, **more)
        try:
            ours()
        except CrewError:
            assert refused, f"{deed} of {name} was refused"
        else:
            assert not refused, f"{deed} of {name} was not refused"

    def _model_does(self, deed, name, *args, **more):
        if name not in self.model.agents and deed != "assign":
            return False
        try:
            getattr(self.model, deed)(name, *args, **more)
        except Refused:
            return False
        return True

    @invariant()
    def nobody_is_passed_over_for_long(self):
        """Between two turns of one who waits, each of the others has at most one."""
        if not hasattr(self, "room"):
            return
        room = self.room
        turns = {name: room.member(name).turn for name in room.channel.members}
        others = [name for name in turns if turns[name] > self.turns.get(name, 0)]
        self.turns = turns
        for name in NAMES:
            waits = name in room.channel.queue and name not in others
            self.passed_over[name] = self.passed_over[name] + len(others) if waits else 0
            assert self.passed_over[name] < len(NAMES), f"{name} waits for ever"

    def _heard(self, name, verb, **args):
        reply = self.room.by(name, verb, **args)
        self.got[name] += [one["sequence"] for one in reply.get("messages", ())]
        assert len(set(self.got[name])) == len(self.got[name]), f"{name} got a message twice"

    def _text(self):
        self.number += 1
        return f"word {self.number}"

    def _check_all_arrives(self):
        """Who comes back in the end has got everything that others said, each thing once."""
        assert fold(self.room.facts) == self.room.world
        for name, state in self.room.states.items():
            if state in {"queued", "active", "waiting"}:
                self._heard(name, "read")
                wanted = [post.sequence for post in self.room.posts if post.sender != name]
                assert sorted(self.got[name]) == wanted, f"{name} lost a message"


def _beat(room, name, at):
    return [noted(room.member(name), "heartbeat", at=at, heartbeat_at=at)]


def _played(count, machine=Histories):
    """How many histories came to their end, each as it should."""
    ended = []

    class Counted(machine):
        def teardown(self):
            super().teardown()
            ended.append(self)

    run_state_machine_as_test(
        Counted,
        settings=settings(
            max_examples=count,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        ),
    )
    return len(ended)


@pytest.mark.timeout(300)
def test_a_thousand_random_histories_agree_with_the_seed():
    assert _played(1000) >= 1000


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_five_thousand_random_histories_agree_with_the_seed():
    assert _played(5000) >= 5000


class DrivenHistories(RuleBasedStateMachine):
    """Members that crew drives, with steps that fail, are interrupted, outlast their turn or die.

    The model of the seed does not know them; what must hold of them is said here.
    """

    @initialize(mode=st.sampled_from(["queue", "interrupt", "inject", "parallel"]))
    def open(self, mode):
        self.room = Room(driven=("a", "b", "c"), interrupting=mode, rounds=2, topic="word 0")
        self.running = {}  # the turn that each step under way was started for
        self.given = {}
        self.number = 0

    @rule(at_most=st.integers(1, 2))
    def crew_does_what_is_due(self, at_most):
        for key in self.room.due[:at_most]:
            name = key.rpartition("/")[2]
            if key.startswith("turn") and name not in self.running:
                self._start(name)

    @rule(pick=st.integers(0, 2), error=st.sampled_from([None, None, None, "crashed", "timeout"]))
    def a_step_ends(self, pick, error):
        if self.running:
            name = sorted(self.running)[pick % len(self.running)]
            self.room.end(name, self._text(), turn=self.running.pop(name), error=error)

    @rule()
    def a_person_speaks(self):
        self.room.say(self._text())

    @rule(seconds=st.sampled_from([1.0, 61.0, 301.0]))
    def time_passes(self, seconds):
        self.room.tick(seconds)

    @rule(name=st.sampled_from("abc"), is_tidied=st.booleans())
    def somebody_is_removed(self, name, is_tidied):
        """Its step ends with its worktree, unless somebody assigns it again before that."""
        if self.room.member(name).takes_part:
            self.room.ask("remove", member=name)
        if is_tidied:
            self._clear_up()

    @rule(name=st.sampled_from("abc"))
    def somebody_is_assigned_again(self, name):
        if self.room.states[name] in {"offline", "idle"} and not self.room.member(name).disabled:
            self.room.ask("assign", member=name)

    @rule(name=st.sampled_from("abc"), is_tidied=st.booleans())
    def somebody_is_disabled_or_enabled(self, name, is_tidied):
        """Its step ends with its worktree, unless it is enabled again before that."""
        verb = "enable" if self.room.member(name).disabled else "disable"
        self.room.ask(verb, member=name)
        if is_tidied:
            self._clear_up()

    @rule()
    def crew_is_killed(self):
        """Every step dies with it, and nothing of what they said is known."""
        self.running.clear()
        self.room.world = fold(self.room.facts)
        self.room.record(awake(self.room.world, at=self.room.now))
        self.room.tick()

    @invariant()
    def at_most_one_has_the_turn(self):
        if hasattr(self, "room"):
            self.room.check()

    @invariant()
    def nobody_has_a_new_turn_while_the_step_of_an_earlier_one_runs(self):
        """So that one answer, however late, takes one turn."""
        for name, turn in getattr(self, "running", {}).items():
            assert self.room.member(name).turn == turn, f"{name} has two turns for one step"

    def teardown(self):
        """Left alone it comes to rest, and everybody has been given every word once."""
        if not hasattr(self, "room"):
            return
        for name, turn in self.running.items():
            self.room.end(name, "", turn=turn)
        self.running.clear()
        for _ in range(40):
            self._clear_up()
            if not (due := self.room.due):
                break
            name = due[0].rpartition("/")[2]
            self._start(name)
            self.room.end(name, self._text())
        assert self.room.due == []
        words = [post.text for post in self.room.posts if post.author != "system"]
        assert len(set(words)) == len(words), "something was said twice"
        assert not self.room.channel.held, "somebody keeps people from being heard"
        for name in self.room.channel.members:
            self._check_was_told(self.room.member(name))

    def _check_was_told(self, member):
        """Whoever could still speak has heard everything, each word in its present session."""
        if member.takes_part and member.turns < self.room.channel.rounds:
            is_answered = member.acknowledged >= member.given and not member.owes_answer
            assert is_answered, f"{member.name} was asked and never answered"
            assert not has_news(self.room.world, member), f"{member.name} was never told"
        session = (member.name, member.session_number)
        told = [text for text in self.given.get(session, ()) if text.startswith("word")]
        posts = [post for post in self.room.posts if post.sequence <= member.given]
        said = [post.text for post in posts if post.sender != member.name]
        assert told == [text for text in said if text.startswith("word")]

    def _clear_up(self):
        """The worktrees of those who left go, and the steps in them."""
        for key in self.room.due:
            if key.startswith("vacate"):
                name = key.rpartition("/")[2]
                self.running.pop(name, None)
                gone = {"housed": False, "speaking": False}
                self.room.record([noted(self.room.member(name), "vacated", at=1.0, **gone)])

    def _start(self, name):
        room = self.room
        texts = room.start(name)
        session = (name, room.member(name).session_number)
        seen = self.given.setdefault(session, [])
        assert not set(seen) & set(texts) - _announcements(texts), "a session was told twice"
        seen += texts
        self.running[name] = room.member(name).turn

    def _text(self):
        self.number += 1
        return f"word {self.number}"


def _announcements(texts):
    return {text for text in texts if not text.startswith("word")}


@pytest.mark.timeout(300)
def test_driven_members_come_to_rest_and_are_told_everything_once():
    assert _played(200, DrivenHistories) >= 200
