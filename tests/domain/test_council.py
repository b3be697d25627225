"""A council comes to a decision, or says that it came to none."""

import pytest

from crew.domain.channels.council import council_verdict, vote
from crew.domain.channels.membership import NewMember, opened
from crew.domain.kernel.errors import UsageError
from crew.domain.rows.channel import Channel, Post
from crew.domain.world import World, fold
from domain.rooms import Room
from refusals import raises_code


def _council(**wishes):
    return Room(driven=("pm", "dev"), council=True, topic="Shall we?", **wishes)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("I like it.\nAGREE\n\n", "AGREE"),
        ("No tests.\n  OBJECT", "OBJECT"),
        ("I AGREE", ""),
        ("AGREE\nbut", ""),
        ("", ""),
    ],
)
def test_a_vote_is_a_word_alone_on_the_last_line(text, word):
    assert vote(text) == word


def test_it_is_decided_as_soon_as_all_agree():
    room = _council(rounds=5)
    room.speaks("pm", "yes\nAGREE")
    assert room.channel.decision == ""
    room.speaks("dev", "fine\nAGREE")
    assert room.channel.agreed
    assert (
        room.channel.decision == "Shall we?: agreed\n\npm:\n> yes\n> AGREE\n\ndev:\n> fine\n> AGREE"
    )
    assert (room.active, room.due) == ([], [])
    assert [fact.trigger for fact in room.facts if fact.trigger == "decided"] == ["decided"]


def test_who_objected_and_was_convinced_agrees_with_its_last_word():
    room = _council(rounds=5)
    room.speaks("pm", "yes\nAGREE")
    room.speaks("dev", "no\nOBJECT")
    room.speaks("pm", "because\nAGREE")
    room.speaks("dev", "I see\nAGREE")
    assert room.channel.agreed


def test_when_the_rounds_are_spent_the_last_words_stand():
    room = _council(rounds=1)
    room.speaks("pm", "yes\nAGREE")
    room.speaks("dev", "no\nOBJECT")
    assert not room.channel.agreed
    assert room.channel.decision.startswith("Shall we?: not agreed after 1 rounds")
    assert "dev:\n> no\n> OBJECT" in room.channel.decision


def test_when_nobody_has_more_to_say_the_last_words_stand():
    room = _council(rounds=3)
    room.speaks("pm", "hm TURN_COMPLETE")
    room.speaks("dev", "fine\nAGREE")
    assert room.channel.decision == ""
    room.speaks("pm", "TURN_COMPLETE")
    assert room.channel.decision.startswith("Shall we?: not agreed when no member had more to say")


def test_who_is_silent_while_the_other_has_no_turn_left_holds_nobody_up():
    room = _council(rounds=2)
    room.ask("assign", member="late", agent_kind="scripted")
    for name in ("pm", "dev", "late", "pm", "dev"):
        room.speaks(name, "no\nOBJECT" if name != "late" else "")
    assert room.channel.decision == ""
    room.speaks("late", "")
    assert room.channel.decision.startswith("Shall we?: not agreed")


def test_a_council_that_was_asked_nothing_decides_nothing():
    room = Room(driven=("pm", "dev"), council=True, rounds=2)
    room.tick()
    assert (room.channel.decision, room.due) == ("", [])
    room.say("Shall we?")
    assert room.due == ["turn room/pm"]


def test_who_has_not_answered_yet_is_waited_for():
    room = _council(rounds=3)
    room.speaks("pm", "", error="crashed")
    room.speaks("dev", "")
    assert room.channel.decision == ""
    assert room.due == ["turn room/pm"]


def test_a_persons_word_opens_the_matter_again_and_old_votes_do_not_count():
    room = _council(rounds=1)
    room.speaks("pm", "AGREE")
    room.speaks("dev", "AGREE")
    room.say("what about the cost?")
    assert room.channel.decision == ""
    assert room.due == ["turn room/pm"]
    room.speaks("pm", "hm\nOBJECT")
    room.speaks("dev", "hm\nOBJECT")
    assert not room.channel.agreed
    assert room.channel.decision


def test_nothing_is_decided_while_somebody_still_speaks():
    room = _council(rounds=5, mode="broadcast")
    room.speaks("pm", "AGREE")
    room.start("dev")
    room.tick()
    assert room.channel.decision == ""
    room.end("dev", "AGREE")
    assert room.channel.agreed


def test_a_council_without_anybody_decides_nothing():
    room = _council(rounds=1)
    for name in ("pm", "dev"):
        room.ask("remove", member=name)
    assert room.channel.decision == ""


def test_only_agents_that_crew_drives_hold_a_council():
    with raises_code(UsageError, "no_agents"):
        Room("pm", council=True, topic="?")


def test_a_verdict_can_be_read_from_posts_alone():
    channel = Channel(id="c", topic="t", rounds=2)
    posts = [Post(id="c/1", channel="c", sequence=1, sender="a", text="AGREE", at=1.0)]
    assert council_verdict(channel, posts, members=["a", "b"]) is None
    spent = council_verdict(channel, posts, members=["a", "b"], spent="after 2 rounds")
    assert (spent.agreed, spent.text) == (
        False,
        "t: not agreed after 2 rounds\n\na:\n> AGREE\n\nb: …",
    )


def test_a_channel_can_be_opened_from_within_the_domain():
    channel = Channel(id="plan", council=True, topic="the plan", rounds=2)
    members = [NewMember(name=name, agent_kind="claude") for name in ("a", "b")]
    world = fold(opened(World(), channel, members, at=5.0))
    assert world.channels["plan"].holder == "a"
    assert [post.text for post in world.posts.values()] == ["the plan"]
