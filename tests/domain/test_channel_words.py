"""What is said in a channel: who may say it, who gets it, how often, and what it does to a turn."""

import math

import pytest

from crew.domain.channels.channel_plan import is_resting, plan_channels
from crew.domain.channels.member_outcomes import heard, turn_troubled, vacated
from crew.domain.channels.member_requests import awake, beat, has_something
from crew.domain.channels.membership import DRIVEN_ROUNDS, NewMember, default_rounds
from crew.domain.channels.posts import addressed, injected_into, without_signal
from crew.domain.clock import Clock
from crew.domain.commands import Vacate
from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.rows.message import LONGEST_MESSAGE
from crew.domain.scope import EVERYTHING
from crew.domain.world import noted
from domain.rooms import RULES, Room
from refusals import raises_code


@pytest.mark.parametrize(
    ("text", "shown", "ends"),
    [
        ("done TURN_COMPLETE", "done", True),
        ("done\nTURN_COMPLETE \n", "done", True),
        ("TURN_COMPLETE", "", True),
        ("turn_complete", "turn_complete", False),
        ("TURN_COMPLETE is the word", "TURN_COMPLETE is the word", False),
        ("plain\n", "plain", False),
    ],
)
def test_the_word_ends_a_turn_at_the_end_of_a_message_only_and_is_not_shown(text, shown, ends):
    assert without_signal(text) == (shown, ends)


def test_a_text_is_for_those_whom_it_names_first():
    names = ("pm", "dev")
    assert addressed("@dev, @pm: look at @pm", names) == ("dev", "pm")
    assert addressed("look, @pm", names) == ()
    assert addressed("@nobody @pm", names) == ()


def test_a_message_that_is_only_the_word_is_not_posted_but_ends_the_turn():
    room = Room("pm", "dev")
    room.by("pm", "post", text="TURN_COMPLETE")
    assert (room.texts, room.active) == ([], ["dev"])


def test_an_empty_message_is_refused():
    room = Room("pm")
    with raises_code(UsageError, "empty_message"):
        room.by("pm", "post", text="  ")
    with raises_code(UsageError, "empty_message"):
        room.say("  ")


def test_who_does_not_have_the_turn_is_told_who_has_it_and_nothing_is_posted():
    room = Room("pm", "dev")
    for verb, args in (("post", {"text": "me too"}), ("turn_complete", {}), ("wait", {})):
        with raises_code(Conflict, "not_your_turn", "pm"):
            room.by("dev", verb, **args)
    assert room.texts == []


def test_who_does_not_wait_cannot_say_that_the_wait_is_over():
    with raises_code(Conflict, "not_waiting"):
        Room("pm").by("pm", "wait", over=True)


def test_who_is_not_there_must_join_first():
    room = Room("pm")
    room.tick(121)
    with raises_code(Conflict, "member_offline"):
        room.by("pm", "read")


def test_a_late_word_after_a_time_out_is_shown_once_and_does_not_move_the_turn():
    room = Room("pm", "dev")
    room.tick(60)
    told = room.by("pm", "post", text="sorry, here it is TURN_COMPLETE")
    assert "timed out" in told["note"]
    late = room.posts[-1]
    assert (late.text, late.late, room.active) == ("sorry, here it is", True, ["dev"])
    with raises_code(Conflict, "not_your_turn"):
        room.by("pm", "post", text="and another thing")


def test_a_late_end_of_a_turn_after_a_time_out_changes_nothing():
    room = Room("pm", "dev")
    room.tick(60)
    assert "nothing was changed" in room.by("pm", "turn_complete")["note"]
    assert room.active == ["dev"]


# Delivery


def test_everybody_gets_each_message_once_in_order_and_never_its_own():
    room = Room("pm", "dev", interrupting="parallel")
    room.say("topic")
    room.by("pm", "post", text="one")
    room.by("pm", "post", text="two TURN_COMPLETE")
    got = room.by("dev", "read")["messages"]
    assert [(one["sequence"], one["from"], one["text"]) for one in got] == [
        (1, "ann", "topic"),
        (2, "pm", "one"),
        (3, "pm", "two"),
    ]
    assert room.by("dev", "read")["messages"] == []
    assert [one["text"] for one in room.by("pm", "read")["messages"]] == ["topic"]


def test_a_later_call_acknowledges_what_was_given_before_and_who_lost_it_can_ask_again():
    room = Room("pm", "dev", interrupting="parallel")
    room.say("topic")
    room.by("dev", "read")
    assert (room.member("dev").given, room.member("dev").acknowledged) == (1, 0)
    room.by("dev", "heartbeat")
    assert room.member("dev").acknowledged == 1
    assert [one["text"] for one in room.by("dev", "read", since=0)["messages"]] == ["topic"]


def test_a_read_has_something_when_there_is_a_message_or_a_turn():
    room = Room("pm", "dev", interrupting="parallel")
    assert has_something(room.world, "room/pm")  # it has the turn
    assert not has_something(room.world, "room/dev")
    room.say("topic")
    assert has_something(room.world, "room/dev")
    room.by("dev", "read")
    assert not has_something(room.world, "room/dev")
    room.ask("remove", member="dev")
    room.say("not for who is idle")
    assert not has_something(room.world, "room/dev")
    assert room.by("dev", "read")["messages"] == []
    room.ask("close")
    assert has_something(room.world, "room/dev")


def test_the_calls_of_a_member_are_its_heartbeat_recorded_now_and_then():
    room = Room("pm", timeout_s=9999.0)
    before = len(room.facts)
    room.tick(1)
    room.by("pm", "heartbeat")
    assert len(room.facts) == before
    for _ in range(10):
        room.tick(100)
        room.by("pm", "heartbeat")
    assert room.states == {"pm": "active"}


def test_who_joins_again_or_waits_to_read_is_there():
    room = Room("pm", timeout_s=9999.0)
    room.now += 100
    room.by("pm", "join")
    assert room.member("pm").heartbeat_at == room.now
    room.now += 100
    room.record(beat(room.world, "room/pm", at=room.now))
    assert room.member("pm").heartbeat_at == room.now
    assert beat(room.world, "room/pm", at=room.now) == []
    room.tick(121)
    assert beat(room.world, "room/pm", at=room.now) == []
    assert beat(room.world, "room/nobody", at=room.now) == []


def test_a_late_word_that_is_only_the_signal_is_not_shown():
    room = Room("pm", "dev", announces_timeouts=False)
    room.tick(60)
    room.by("pm", "post", text="TURN_COMPLETE")
    assert room.texts == []


def test_who_is_assigned_while_it_is_away_is_queued_when_it_comes():
    room = Room("pm", "dev")
    room.tick(121)
    assert room.ask("assign", member="dev") == "offline"
    room.by("dev", "join")
    assert room.active == ["dev"]


def test_in_a_direct_channel_with_one_member_there_is_no_doubt_whom_a_word_is_for():
    room = Room(driven=("pm",), mode="direct")
    room.say("hello")
    assert (room.posts[-1].to, room.due) == (("pm",), ["turn room/pm"])


@pytest.mark.parametrize("odd", [-1, math.nan, math.inf, "soon", [3]])
def test_a_number_that_is_none_is_refused_and_changes_nothing(odd):
    room = Room("pm", "dev", topic="hello")
    before = room.world
    for verb, name in (("wait", "seconds"), ("read", "since")):
        with raises_code(UsageError, "invalid_value", name):
            room.by("pm", verb, **{name: odd})
    assert room.world == before


def test_a_number_that_is_too_large_is_as_much_as_there_is():
    room = Room("pm", "dev", topic="hello")
    assert len(room.by("pm", "read")["messages"]) == 1
    assert room.by("pm", "read", since=10**400)["messages"] == []
    room.by("pm", "wait", seconds=10**400)
    assert room.looks_again_at == room.now + 120  # its heartbeat: it may wait for longer


# How much


def test_who_comes_back_after_long_reads_everything_in_pieces_and_nothing_twice():
    room = Room("pm", "dev", interrupting="inject")
    for number in range(1, 8):
        room.say(f"{number} " + "x" * 20_000)
    got, left = [], []
    while True:
        read = room.by("dev", "read")
        got += [one["sequence"] for one in read["messages"]]
        left.append(read.get("more", 0))
        if not left[-1]:
            break
    assert (got, left) == ([1, 2, 3, 4, 5, 6, 7], [5, 3, 1, 0])
    assert room.by("dev", "read")["messages"] == []


def test_a_message_that_is_longer_than_a_read_may_be_comes_alone():
    room = Room("pm", "dev")
    room.say("x" * 90_000)
    room.say("and?")
    read = room.by("dev", "read")
    assert ([one["sequence"] for one in read["messages"]], read["more"]) == ([1], 1)


def test_what_was_heard_before_is_not_read_again_in_a_later_piece():
    room = Room("pm", "dev")
    room.by("dev", "read")
    for number in range(3):
        room.by("pm", "post", text=f"{number} " + "x" * 30_000)
    room.by("pm", "turn_complete")
    room.say("a word for dev")
    assert [one["sequence"] for one in room.by("dev", "heartbeat")["messages"]] == [4]
    read = [one["sequence"] for _ in range(4) for one in room.by("dev", "read")["messages"]]
    assert read == [1, 2, 3]


def test_who_is_interrupted_goes_on_only_when_it_has_read_the_word():
    room = Room("pm", "dev", interrupting="interrupt")
    room.by("pm", "turn_complete")
    room.by("dev", "post", text="x" * 40_000)
    room.by("dev", "post", text="x" * 40_000 + " TURN_COMPLETE")
    room.say("stop")
    assert (room.by("pm", "read")["state"], room.by("pm", "read")["state"]) == ("waiting", "active")


LONG = "x" * (LONGEST_MESSAGE + 1)


def test_a_person_who_says_too_much_is_told_so_and_nothing_is_cut_off():
    room = Room("pm")
    with raises_code(UsageError, "too_long", "100,001"):
        room.say(LONG)
    with raises_code(UsageError, "too_long", "100,001"):
        Room("pm", topic=LONG)
    assert room.texts == []


def test_what_a_driven_member_says_is_bounded_and_says_where_it_was_cut():
    room = Room(driven=("pm",), topic="go")
    room.speaks("pm", f"{LONG} TURN_COMPLETE")
    assert room.texts[-1].endswith("x\n[cut: it had 100,001 characters]")
    assert len(room.texts[-1]) < len(LONG) + 50


# People


def test_queue_keeps_a_persons_word_until_the_turn_ends_and_delivers_it_then():
    room = Room("pm", "dev", interrupting="queue")
    assert room.say("first") == {"sequence": None, "held_for": ["pm"]}
    room.by("pm", "post", text="my turn TURN_COMPLETE")
    assert room.texts == ["my turn", "first"]
    assert room.channel.held == ()


def test_mode_queue_a_word_for_somebody_is_for_him_also_when_the_turn_has_ended():
    room = Room(driven=("pm", "dev"), mode="direct", interrupting="queue")
    room.say("@pm go")
    room.start("pm")
    assert room.say("listen", to=["dev"])["held_for"] == ["pm"]
    with raises_code(UsageError, "no_recipient"):
        room.say("whoever")
    room.end("pm", "done")
    assert (room.posts[-1].text, room.posts[-1].to) == ("listen", ("dev",))
    assert room.due == ["turn room/dev"]


def test_mode_queue_what_was_held_when_the_channel_is_closed_is_in_its_log():
    room = Room("pm", "dev", interrupting="queue")
    room.say("before you go")
    room.ask("close")
    assert (room.texts, room.channel.held) == (["before you go"], ())


def test_words_that_an_older_crew_held_are_released_too():
    room = Room("pm", "dev", interrupting="queue")
    room.record([noted(room.channel, "held", at=1.0, held=(("ann", "of old", 1.0),))])
    room.by("pm", "turn_complete")
    assert room.texts == ["of old"]


def test_interrupt_pauses_the_turn_until_the_word_is_read_and_then_it_goes_on():
    room = Room("pm", "dev", interrupting="interrupt")
    room.say("stop")
    for verb, args in (("post", {"text": "but"}), ("turn_complete", {})):
        with raises_code(Conflict, "turn_interrupted"):
            room.by("pm", verb, **args)
    assert room.by("pm", "read")["messages"][0]["text"] == "stop"
    assert room.moves("pm")[-2:] == [
        ("active", "waiting", "human_interrupts"),
        ("waiting", "active", "wait_resolved"),
    ]
    room.by("pm", "post", text="as you say")
    assert room.texts == ["stop", "as you say"]


def test_a_second_word_does_not_end_the_pause_that_the_first_one_made():
    room = Room("pm", "dev", interrupting="interrupt")
    room.say("stop")
    room.say("and listen")
    assert room.states["pm"] == "waiting"
    assert [one["text"] for one in room.by("pm", "read")["messages"]] == ["stop", "and listen"]
    assert room.active == ["pm"]


def test_inject_brings_a_persons_word_with_whatever_the_active_one_does_next():
    room = Room("pm", "dev", interrupting="inject")
    room.say("mind the tests")
    told = room.by("pm", "post", text="I write")
    assert [one["text"] for one in told["messages"]] == ["mind the tests"]
    assert room.by("pm", "read")["messages"] == []


def test_parallel_lets_everything_through_and_disturbs_nobody():
    room = Room("pm", "dev", interrupting="parallel")
    room.say("by the way")
    told = room.by("pm", "post", text="I write")
    assert told["messages"] == []
    assert room.texts == ["by the way", "I write"]


# Members that crew drives


def test_crew_calls_a_member_only_when_there_is_something_to_answer():
    room = Room(driven=("pm", "dev"))
    assert (room.active, room.due, room.looks_again_at) == (["pm"], [], None)
    room.say("hello")
    assert room.due == ["turn room/pm"]
    assert room.start("pm") == ["hello"]
    assert room.looks_again_at == room.now + 60
    room.end("pm", "hi ann TURN_COMPLETE")
    assert room.due == ["turn room/dev"]
    assert room.speaks("dev", "hi both") == ["hello", "hi ann"]
    assert room.speaks("pm", "") == ["hi both"]
    assert (room.due, room.texts) == ([], ["hello", "hi ann", "hi both"])


def test_channels_do_not_disturb_each_other():
    room = Room(driven=("pm", "dev"), topic="hello")
    members = [{"name": "pm", "agent_kind": "scripted"}]
    room.ask("new", channel="other", members=members, topic="hello too", rounds=None)
    assert room.due == ["turn room/pm", "turn other/pm"]
    room.speaks("pm", "hi")
    assert room.due == ["turn room/dev", "turn other/pm"]


def test_who_has_nothing_to_answer_leaves_the_turn_to_who_has_something_to_say():
    room = Room(driven=("pm", "dev"))
    assert room.active == ["pm"]
    room.ask("assign", member="qa")
    room.by("qa", "join")
    assert (room.active, room.member("pm").turns) == (["qa"], 0)


def test_agents_among_themselves_rest_after_their_rounds_until_a_person_speaks():
    room = Room(driven=("pm", "dev"), rounds=2, topic="talk")
    for _ in range(4):
        (name,) = room.active
        room.speaks(name, f"a word of {name}")
    assert (room.active, room.due) == ([], [])
    room.say("go on")
    assert room.due == ["turn room/pm"]


def test_who_joins_a_conversation_has_as_many_turns_left_as_the_others():
    room = Room(driven=("pm", "dev"), rounds=2, topic="talk")
    room.speaks("pm", "a word")
    room.speaks("dev", "a word")
    room.ask("assign", member="qa", agent_kind="scripted")
    spoken = []
    while room.due:
        spoken += room.active
        room.speaks(room.active[0], "more")
    assert spoken == ["pm", "dev", "qa"]


def test_only_driven_agents_have_a_limit_that_nobody_asked_for():
    pm, qa = (NewMember(name=name, agent_kind="claude") for name in ("pm", "qa"))
    guest = NewMember(name="guest")
    assert default_rounds([pm]) == default_rounds([pm, qa]) == DRIVEN_ROUNDS
    assert default_rounds([pm, guest]) is default_rounds([guest]) is None


def test_two_that_cost_money_do_not_talk_without_end_because_a_guest_was_invited_too():
    pm, qa = (NewMember(name=name, agent_kind="claude") for name in ("pm", "qa"))
    assert default_rounds([pm, NewMember(name="guest"), qa]) == DRIVEN_ROUNDS


def test_what_a_step_used_is_added_up_and_what_it_was_given_is_acknowledged():
    room = Room(driven=("pm",), topic="hello")
    room.speaks("pm", "a")
    room.say("again")
    room.speaks("pm", "b")
    pm = room.member("pm")
    assert (pm.steps, pm.input_tokens, pm.output_tokens, pm.cost_usd) == (2, 6, 4, 1.0)
    assert (pm.given, pm.acknowledged, pm.session_used) == (3, 3, True)


def test_a_step_that_was_cut_off_is_done_again_and_given_nothing_twice():
    room = Room(driven=("pm", "dev"), topic="hello")
    assert room.start("pm") == ["hello"]
    assert room.due == ["turn room/pm"]  # nothing is under way after a crash
    assert room.member("pm").cost_usd == 0.0
    assert room.start("pm") == []
    assert room.member("pm").cost_usd is None  # the first try did not report what it cost
    (left,) = vacated(room.member("pm"), at=1.0)
    assert left.changes["cost_usd"] is None
    room.end("pm", "hi")
    assert room.texts == ["hello", "hi"]


def test_a_word_heard_in_the_middle_of_a_step_is_not_given_again():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.say("use the blue one")
    room.record(heard(room.member("pm"), 2, at=room.now))
    assert heard(room.member("pm"), 2, at=room.now) == []
    room.end("pm", "blue")
    assert room.active == ["dev"]
    room.speaks("dev", "fine")
    assert room.start("pm") == ["fine"]
    assert room.member("pm").given == 4


def test_inject_lets_the_turn_go_on_when_a_persons_word_came_too_late_for_the_step():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.say("wait, use the blue one")
    room.end("pm", "red TURN_COMPLETE")
    assert (room.active, room.due) == (["pm"], ["turn room/pm"])
    assert room.speaks("pm", "blue then") == ["wait, use the blue one"]
    assert room.active == ["dev"]


def test_only_a_step_under_way_is_spoken_to_and_only_by_people():
    room = Room("qa", driven=("pm",), mode="broadcast", topic="hello")
    room.start("pm")
    room.say("now")
    assert injected_into(room.world, room.posts[-1]) == ["room/pm"]
    room.by("qa", "post", text="me too")
    assert injected_into(room.world, room.posts[-1]) == []


def test_a_channel_rests_when_nobody_whom_crew_drives_has_anything_to_say():
    room = Room(driven=("pm", "dev"))
    assert is_resting(room.world, "room")
    room.say("hello")
    assert not is_resting(room.world, "room")
    room.start("pm")
    assert not is_resting(room.world, "room")
    room.end("pm")
    room.speaks("dev")
    assert is_resting(room.world, "room")


def test_parallel_does_not_prolong_a_turn():
    room = Room(driven=("pm", "dev"), topic="hello", interrupting="parallel")
    room.start("pm")
    room.say("by the way")
    room.end("pm", "hi")
    assert room.active == ["dev"]


def test_an_interrupted_step_is_heard_as_far_as_it_came_and_its_turn_goes_on_with_the_word():
    room = Room(driven=("pm", "dev"), topic="hello", interrupting="interrupt")
    room.start("pm")
    room.say("stop")
    assert room.states["pm"] == "waiting"
    room.end("pm", "half a sen")
    assert (room.texts, room.active) == (["hello", "stop", "half a sen"], ["pm"])
    assert room.speaks("pm", "as you say") == ["stop"]
    assert room.active == ["dev"]


def test_an_interrupted_step_whose_runner_died_is_taken_up_again():
    room = Room(driven=("pm",), topic="hello", interrupting="interrupt")
    room.start("pm")
    room.say("stop")
    room.record(awake(room.world, at=room.now))
    assert room.due == ["turn room/pm"]
    assert room.speaks("pm", "as you say") == ["stop"]
    place = room.moves("pm").index(("active", "waiting", "human_interrupts"))
    assert room.moves("pm")[place + 1] == ("waiting", "active", "wait_resolved")


def test_a_member_that_crew_cannot_call_is_an_error_like_any_other():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.record(turn_troubled(room.world, "room/pm", "no such agent", rules=RULES, at=room.now))
    assert (room.texts[-1], room.active) == ("⚠️ pm: no such agent", ["dev"])


def test_a_step_that_outlasts_its_turn_is_shown_late_and_moves_nothing():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.tick(60)
    assert room.active == ["dev"]
    room.end("pm", "at last")
    assert (room.posts[-1].late, room.active) == (True, ["dev"])


def test_a_member_whose_step_outlasts_its_turn_is_granted_none_until_that_step_ends():
    room = Room(driven=("pm", "dev"), topic="hello", rounds=4)
    room.start("pm")
    for _ in range(4):
        room.tick(61)
        room.speaks("dev", "meanwhile") if "turn room/dev" in room.due else room.say("and now?")
    pm = room.member("pm")
    assert (pm.state, pm.turn, room.texts.count("⏱️ pm turn timed out")) == ("queued", 1, 1)
    room.end("pm", "at last", turn=1)
    assert (room.posts[-1].late, room.active, room.member("pm").turn) == (True, ["dev"], 1)
    room.speaks("dev", "thank you")
    assert (room.active, room.due, room.member("pm").turn) == (["pm"], ["turn room/pm"], 2)


def test_a_member_that_is_alone_has_its_next_turn_when_its_late_step_ends():
    room = Room(driven=("pm",), topic="hello")
    room.start("pm")
    room.tick(61)
    room.say("are you there?")
    assert (room.active, room.due) == ([], [])
    room.end("pm", "at last", turn=1)
    assert (room.active, room.due) == (["pm"], ["turn room/pm"])


@pytest.mark.parametrize("mode", ["broadcast", "direct"])
def test_where_all_speak_at_once_a_late_step_keeps_its_member_from_a_second_one(mode):
    room = Room(driven=("pm", "dev"), topic="hello", mode=mode)
    room.start("pm")
    room.tick(61)
    room.say("@pm are you there?")
    assert (room.states["pm"], room.member("pm").turn) == ("queued", 1)
    room.end("pm", "at last", turn=1)
    assert (room.states["pm"], room.member("pm").turn) == ("active", 2)


def test_who_is_to_speak_next_by_a_persons_wish_speaks_when_its_late_step_has_ended():
    room = Room(driven=("pm", "dev", "qa"), topic="hello")
    room.start("pm")
    room.tick(61)
    assert room.ask("override", member="pm", state="active") == "queued"
    room.speaks("dev", "meanwhile")
    assert room.active == ["qa"]
    room.end("pm", "at last", turn=1)
    room.speaks("qa", "me too")
    assert room.active == ["pm"]


def test_in_the_manual_order_nobody_is_given_a_turn_while_its_late_step_runs():
    room = Room(driven=("pm", "dev"), topic="hello", order="manual")
    room.ask("override", member="pm", state="active")
    room.start("pm")
    room.tick(61)
    with raises_code(Conflict, "step_running") as refused:
        room.ask("override", member="pm", state="active")
    assert "channel remove room pm" in refused.value.hint


def test_a_late_step_that_dies_with_the_runner_keeps_its_member_from_no_turn():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.tick(61)
    room.record(awake(room.world, at=room.now))
    assert (room.member("pm").speaking, room.member("pm").session_used) == (False, True)
    room.speaks("dev", "a word for pm")
    assert (room.active, room.due) == (["pm"], ["turn room/pm"])


def test_an_error_is_shown_and_ends_the_turn_and_the_third_in_a_row_is_a_crash():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.speaks("pm", error="crashed")
    assert room.moves("pm")[-1] == ("active", "queued", "step_failed")
    assert "⚠️ pm: a crashed" in room.texts
    room.speaks("dev", "hm")
    room.speaks("pm", error="overloaded")
    room.speaks("pm", error="crashed")  # nobody else has anything to answer
    assert room.moves("pm")[-1] == ("active", "offline", "agent_crashes")
    assert room.active == ["dev"]
    room.ask("assign", member="pm")
    assert (room.states["pm"], room.member("pm").errors) == ("active", 0)


def test_a_good_step_forgets_the_errors_before_it():
    room = Room(driven=("pm",), topic="hello")
    room.speaks("pm", error="crashed")
    room.speaks("pm", "hi")
    assert (room.member("pm").errors, room.member("pm").last_error) == (0, "")


def test_a_driven_member_that_waits_keeps_its_turn_when_its_step_ends():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.by("pm", "wait", seconds=90)
    room.end("pm", "I wait for the build")
    assert room.states["pm"] == "waiting"
    assert room.due == []
    room.say("it is green")
    assert room.due == ["turn room/pm"]


@pytest.mark.parametrize("error", ["crashed", "session_unknown"])
def test_a_step_that_fails_while_a_person_interrupts_it_loses_nobody(error):
    room = Room(driven=("pm", "dev"), topic="hello", interrupting="interrupt")
    room.start("pm")
    room.say("stop")
    room.end("pm", error=error)
    assert room.states["pm"] == ("queued" if error == "crashed" else "active")
    assert room.due


def test_an_error_of_a_step_whose_turn_is_over_ends_nobody_elses():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.tick(60)
    room.end("pm", error="crashed")
    assert (room.active, room.member("pm").errors) == (["dev"], 1)
    room.ask("remove", member="pm")
    before = len(room.texts)
    room.end("pm", error="crashed")
    assert len(room.texts) == before


def test_a_session_that_cannot_be_used_is_replaced_once_and_the_new_one_is_told_everything():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.speaks("pm", "hi")
    room.speaks("dev", "hi")
    room.start("pm")
    room.end("pm", error="session_unknown")
    pm = room.member("pm")
    assert (room.active, pm.session, pm.session_number, pm.errors) == (["pm"], "", 1, 0)
    assert room.start("pm") == ["hello", "hi"]
    room.end("pm", error="session_unknown")
    assert room.member("pm").errors == 1


def test_a_rate_limit_is_no_error_and_the_turn_waits_for_its_provider():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.end("pm", error="rate_limit", reset_at=room.now + 600)
    assert (room.active, room.due, room.texts) == (["pm"], [], ["hello"])
    assert room.looks_again_at == room.now + 600
    room.tick(600)
    assert room.due == ["turn room/pm"]
    room.speaks("pm", "hi")
    assert room.world.providers["scripted"].state == "open"


def test_who_is_assigned_again_is_not_called_while_its_worktree_is_removed():
    room = Room(driven=("pm",), topic="hello")
    leaving = frozenset({Vacate(subject="room/pm").key})
    assert room.due == ["turn room/pm"]
    plan = plan_channels(room.world, Clock(room.now), rules=RULES, scope=EVERYTHING, busy=leaving)
    assert list(plan) == []


def test_who_leaves_while_its_step_runs_has_its_worktree_taken_away_and_is_not_heard():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.ask("remove", member="pm")
    assert room.due == ["vacate room/pm", "turn room/dev"]
    room.ask("close")
    room.end("pm", "too late")
    assert room.texts == ["hello"]


def test_somebody_is_invited_only_if_crew_does_not_drive_it():
    room = Room(driven=("pm",))
    with raises_code(Conflict, "name_taken", "pm"):
        room.ask("invite", member="pm")
    assert room.ask("invite", member="guest") == "offline"
    assert room.ask("invite", member="guest") == "offline"
