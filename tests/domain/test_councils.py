"""Councils of quests: opened when a walk comes to one, closed with its decision."""

from dataclasses import replace

import pytest

from crew.domain.channels.channel_draft import ChannelDraft
from crew.domain.channels.membership import NewMember, close, opened
from crew.domain.clock import Clock
from crew.domain.commands import CommandKind, SpeakTurn
from crew.domain.lead_choice import LEADS
from crew.domain.plan import decide, plan
from crew.domain.quests.council_stage import follow_councils, is_awaited
from crew.domain.rows.channel import Author, Channel, Post, TurnState
from crew.domain.rows.quest import ItemState, PlanItem, Position, Quest
from crew.domain.rows.question import About
from crew.domain.rows.run import Run, RunState
from crew.domain.rows.task import Task, TaskState
from crew.domain.rows.workflow import Does, Role, Stage, Workflow, as_text
from crew.domain.rules import Rules
from crew.domain.tasks.readiness import can_start
from crew.domain.world import apply_all, with_rows

WORKFLOW = Workflow(
    name="council",
    roles={name: Role(name=name) for name in ("seeker", "weaver", "judge")},
    stages=(
        Stage(
            name="plan", does=Does.ROLE, roles=("seeker",), plans=True, routes={"complete": "talk"}
        ),
        Stage(
            name="talk",
            does=Does.COUNCIL,
            roles=("weaver", "judge"),
            rounds=2,
            limit=2,
            routes={"agreed": "walk", "objected": "plan"},
        ),
        Stage(name="walk", does=Does.STEPS, routes={"complete": "done"}),
    ),
    step_stages=(
        Stage(name="build", does=Does.ROLE, roles=("weaver",), routes={"complete": "done"}),
    ),
)


def waiting_world(*, visits=()):
    """A quest whose plan is handed in and that has come to its council."""
    plan = (tuple(PlanItem(key="a", title="Do a")), tuple(PlanItem(key="b", title="Do b")))
    return with_rows(
        [
            Quest(id="1", workflow="council", definition=as_text(WORKFLOW), slots=2, plan=plan),
            Position(
                id="1",
                quest="1",
                task="1",
                role="seeker",
                stage="talk",
                state=ItemState.IN_PROGRESS,
                visits=visits,
            ),
            Task(id="1", title="Big", quest="1", state=TaskState.IN_PROGRESS, run="1.1"),
            Run(
                id="1.1",
                task="1",
                role="seeker",
                agent_kind="claude",
                state=RunState.REVIEWING,
                session="s",
                session_used=True,
            ),
        ]
    )


def convened(**how):
    world = waiting_world(**how)
    return apply_all(world, follow_councils(world, 1.0))


def decided(world, *, agreed):
    (name,) = (position.council for position in world.positions.values())
    channel = replace(world.channels[name], decision="so be it", agreed=agreed)
    return replace(world, channels={**world.channels, name: channel})


def test_a_walk_that_comes_to_its_council_opens_a_channel_of_its_roles():
    world = convened()
    channel = world.channels["council-1-1"]
    assert channel.members == ("weaver", "judge")
    assert (channel.council, channel.rounds, channel.task) == (True, 2, "1")
    assert {member.agent_kind for member in world.members.values()} == {"claude"}
    assert is_awaited(channel)


def test_the_council_is_told_the_request_and_the_plan():
    posts = convened().posts.values()
    assert [post.author for post in posts] == [Author.PERSON]
    (topic,) = (post.text for post in posts)
    assert all(words in topic for words in ("Big", "a: Do a", "b: Do b"))


def test_it_is_opened_once_and_nobody_is_needed_for_the_task_meanwhile():
    world = convened()
    assert follow_councils(world, 2.0) == []
    commands = plan(world, Clock(2.0), rules=Rules())
    assert CommandKind.RUN not in {command.kind for command in commands}
    assert SpeakTurn(subject="council-1-1/weaver") in commands
    assert sum(isinstance(command, SpeakTurn) for command in commands) == 1


def test_a_plan_that_is_agreed_on_is_walked():
    world = decided(convened(), agreed=True)
    world = apply_all(world, follow_councils(world, 3.0))
    assert world.positions["1"].stage == "walk"
    assert not world.channels["council-1-1"].is_open
    assert world.positions["1"].said[-1].words == "so be it"


def test_a_plan_that_is_objected_to_goes_back_to_its_planner_with_the_reasons():
    world = decided(convened(), agreed=False)
    world = apply_all(world, follow_councils(world, 3.0))
    run = world.runs["1.1"]
    assert (world.positions["1"].stage, run.state, run.role) == ("plan", RunState.WORKING, "seeker")
    assert "so be it" in run.notes


def at_its_council_again(world, **changes):
    """The same walk, some time later, has come to a council once more."""
    position = replace(world.positions["1"], stage="talk", **changes)
    run = replace(world.runs["1.1"], state=RunState.REVIEWING, agent=None, question="")
    world = replace(world, positions={"1": position}, runs={"1.1": run})
    return apply_all(world, follow_councils(world, 4.0))


@pytest.mark.parametrize("visits", [(("talk", 1),), ()], ids=["counted", "begun anew"])
def test_the_next_council_is_a_new_channel_and_no_old_decision_counts(visits):
    world = decided(convened(), agreed=False)
    world = apply_all(world, follow_councils(world, 3.0))
    world = at_its_council_again(world, visits=visits)
    assert world.positions["1"].council == "council-1-2"
    assert world.channels["council-1-2"].is_open
    assert world.positions["1"].stage == "talk"


def test_a_channel_that_somebody_else_opened_under_its_name_is_no_council():
    world = waiting_world()
    opening = opened(world, Channel(id="council-1-1"), [NewMember(name="guest")], at=0.5)
    world = apply_all(world, opening)
    world = apply_all(world, follow_councils(world, 1.0))
    assert world.positions["1"].council == "council-1-2"


def test_a_task_whose_id_is_longer_than_the_name_of_a_channel_has_its_council_too():
    long = "myproject-some-epic-with-a-long-name-17"
    world = waiting_world()
    world = replace(
        world,
        tasks={long: replace(world.tasks["1"], id=long)},
        positions={long: replace(world.positions["1"], id=long, task=long)},
        runs={"1.1": replace(world.runs["1.1"], task=long)},
    )
    world = apply_all(world, follow_councils(world, 1.0))
    assert world.channels[world.positions[long].council].task == long


def test_a_person_is_asked_once_councils_object_too_often():
    world = decided(convened(visits=(("talk", 1),)), agreed=False)
    world = apply_all(world, follow_councils(world, 3.0))
    (question,) = world.questions.values()
    assert question.about == About.BLOCKED
    assert world.positions["1"].state == ItemState.BLOCKED
    assert "talk was objected 2 times" in question.question


def test_whoever_closes_a_council_by_hand_lets_the_task_go_on():
    world = convened()
    story = ChannelDraft(world, "council-1-1", at=2.0)
    close(story)
    world = apply_all(world, story.facts)
    world = apply_all(world, follow_councils(world, 3.0))
    assert world.positions["1"].stage == "walk"


def test_a_person_is_asked_when_nobody_can_speak():
    world = convened()
    gone = {
        name: replace(member, state=TurnState.OFFLINE, assigned=False)
        for name, member in world.members.items()
    }
    channel = replace(world.channels["council-1-1"], queue=(), holder="")
    world = replace(world, members=gone, channels={"council-1-1": channel})
    world = apply_all(world, follow_councils(world, 3.0))
    (question,) = world.questions.values()
    assert "no member could speak" in question.question
    assert not world.channels["council-1-1"].is_open


@pytest.mark.parametrize("state", [TaskState.TODO, TaskState.ERROR])
def test_a_task_that_is_stopped_during_its_council_comes_to_another_one_by_the_role_before(state):
    world = convened()
    stopped = {
        "tasks": {"1": replace(world.tasks["1"], state=state)},
        "runs": {"1.1": replace(world.runs["1.1"], state=RunState.FAILED)},
    }
    world = replace(world, **stopped)
    world = apply_all(world, follow_councils(world, 3.0))
    position = world.positions["1"]
    assert (position.stage, position.role) == ("plan", "seeker")
    assert not world.channels["council-1-1"].is_open
    assert can_start(world, world.tasks["1"], LEADS)
    again = replace(position, stage="talk")
    running = {
        "positions": {"1": again},
        "tasks": {"1": replace(world.tasks["1"], state=TaskState.IN_PROGRESS)},
        "runs": {"1.1": replace(world.runs["1.1"], state=RunState.REVIEWING)},
    }
    world = replace(world, **running)
    assert "council-1-2" in apply_all(world, follow_councils(world, 4.0)).channels


@pytest.mark.parametrize(
    "over",
    [
        {"tasks": {"state": TaskState.CLOSED}},
        {"tasks": {"gone": True}},
        {"positions": {"state": ItemState.DROPPED}},
        {"positions": {"stage": "plan", "council": ""}},
    ],
    ids=["closed", "gone", "dropped", "elsewhere"],
)
def test_a_council_that_nobody_waits_for_any_more_is_closed_and_costs_nothing(over):
    world = convened()
    assert world.channels["council-1-1"].is_open
    for table, changes in over.items():
        world = replace(world, **{table: {"1": replace(getattr(world, table)["1"], **changes)}})
    while facts := decide(world, Clock(5.0), rules=Rules()):
        world = apply_all(world, facts)
    assert not world.channels["council-1-1"].is_open
    commands = plan(world, Clock(5.0), rules=Rules())
    assert CommandKind.TURN not in {command.kind for command in commands}


@pytest.mark.parametrize(("last", "agreed"), [("AGREE", True), ("OBJECT", False)])
def test_what_its_members_say_last_decides(last, agreed):
    world = convened()
    for number, name in enumerate(("weaver", "judge", "weaver", "judge"), start=2):
        post = Post(
            id=f"council-1-1/{number}",
            channel="council-1-1",
            sequence=number,
            sender=name,
            text=f"I say\n{last}",
            at=2.0,
        )
        world = replace(world, posts={**world.posts, post.id: post})
    members = {
        name: replace(one, turns=2, state=TurnState.QUEUED, turn_ends_at=None)
        for name, one in world.members.items()
    }
    channel = replace(
        world.channels["council-1-1"], sequence=5, holder="", queue=("weaver", "judge")
    )
    world = replace(world, members=members, channels={"council-1-1": channel})
    while facts := decide(world, Clock(5.0), rules=Rules()):
        world = apply_all(world, facts)
    assert world.channels["council-1-1"].agreed is agreed
    assert world.positions["1"].stage == ("walk" if agreed else "plan")
