"""A channel to try things in: requests as people and agents make them, and what came of them."""

from crew.domain.channels.channel_plan import decide_channels, plan_channels
from crew.domain.channels.member_outcomes import turn_spoken, turn_started
from crew.domain.channels.member_requests import beat
from crew.domain.channels.posts import posts_after, unseen
from crew.domain.clock import Clock
from crew.domain.commands import CommandKind
from crew.domain.request_verbs import answer
from crew.domain.requests import Request
from crew.domain.rows.channel import Post
from crew.domain.rows.step import ErrorKind, StepError, StepOutcome, Usage
from crew.domain.rules import Rules
from crew.domain.scope import EVERYTHING, Scope
from crew.domain.world import World, apply_all, fold

RULES = Rules()


class Room:
    """One channel, called `room`, on a clock that moves when told."""

    def __init__(self, *members, driven=(), **wishes):
        self.now, self.facts, self.world = 100.0, [], World()
        named = [{"name": name} for name in members]
        named += [{"name": name, "agent_kind": "scripted"} for name in driven]
        wishes = {"rounds": None, **wishes}
        self.ask("new", members=named, sender="ann", **wishes)
        for name in members:
            self.by(name, "join")

    def ask(self, verb, **args):
        request = Request(verb=f"channel_{verb}", args={"channel": "room", **args})
        return self._answered(request)

    def by(self, name, verb, **args):
        """What a member asks for itself; that it asks proves that it is there, also if refused."""
        self.record(beat(self.world, f"room/{name}", at=self.now))
        args = {"member": f"room/{name}", **args}
        return self._answered(Request(verb=f"channel_{verb}", args=args))

    def say(self, text, **args):
        return self.ask("say", text=text, sender="ann", **args)

    def _answered(self, request):
        asked = answer(self.world, request, rules=RULES, at=self.now)
        self.record(asked.facts)
        return asked.reply

    def record(self, facts):
        self.facts += facts
        self.world = apply_all(self.world, facts)

    def tick(self, seconds=0.0, *, is_running=True):
        """Time passes, and everything that follows from it follows."""
        self.now += seconds
        scope = Scope(takes_work=is_running)
        while facts := decide_channels(self.world, Clock(self.now), scope=scope):
            self.record(facts)

    def start(self, name):
        """The step of a driven member begins; what it is given with it."""
        member = self.member(name)
        posts = list(unseen(self.world, member))
        self.record(turn_started(self.world, member, session="s", at=self.now))
        return [post.text for post in posts]

    def end(self, name, text="", *, turn=None, error=None, reset_at=None):
        """The step of a driven member ends."""
        member = self.member(name)
        kind = error and StepError(kind=ErrorKind(error), message=f"a {error}", reset_at=reset_at)
        usage = Usage(input_tokens=3, output_tokens=2, cost_usd=0.5)
        outcome = StepOutcome(session="s", text=text, error=kind, usage=usage)
        turn = member.turn if turn is None else turn
        self.record(
            turn_spoken(self.world, member.id, outcome, turn=turn, rules=RULES, at=self.now)
        )

    def speaks(self, name, text="", **how):
        given = self.start(name)
        self.end(name, text, **how)
        return given

    @property
    def channel(self):
        return self.world.channels["room"]

    def member(self, name):
        return self.world.members[f"room/{name}"]

    @property
    def states(self):
        return {name: self.member(name).state for name in self.channel.members}

    @property
    def active(self):
        return [name for name, state in self.states.items() if state == "active"]

    @property
    def posts(self) -> list[Post]:
        return list(posts_after(self.world, self.channel, 0))

    @property
    def texts(self):
        return [post.text for post in self.posts]

    @property
    def due(self):
        """The keys of what crew has to do now."""
        commands = plan_channels(self.world, Clock(self.now), rules=RULES, scope=EVERYTHING)
        return [str(command.key) for command in commands]

    @property
    def looks_again_at(self):
        clock, scope = Clock(self.now), Scope(channel="room")
        decide_channels(self.world, clock, scope=scope)
        list(plan_channels(self.world, clock, rules=RULES, scope=scope))
        return clock.waits.get(CommandKind.TURN)

    def moves(self, name):
        """The log of a member's moves as (from, to, trigger)."""
        return [
            (fact.source, fact.target, fact.trigger)
            for fact in self.facts
            if fact.kind == "member" and fact.subject == f"room/{name}" and fact.target
        ]

    def check(self):
        """What holds in every channel at every moment."""
        assert fold(self.facts) == self.world
        assert len(self.active) <= 1 or self.channel.mode in {"broadcast", "direct"}
        queued = [name for name, state in self.states.items() if state == "queued"]
        assert sorted(self.channel.queue) == sorted(queued)
