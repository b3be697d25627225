"""Whose turn it is in a channel, and what ends it: seed 002, rule by rule."""

import pytest

from crew.domain.channels.channel_requests import find_channel
from crew.domain.channels.member_requests import awake
from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.world import World, fold, noted
from domain.rooms import Room
from refusals import raises_code


def _with(row, **changes):
    return noted(row, "changed", at=1.0, **changes)


# The queue


def test_the_first_member_that_comes_is_active_at_once_and_the_others_queue_in_order():
    room = Room("pm", "dev", "qa")
    assert room.states == {"pm": "active", "dev": "queued", "qa": "queued"}
    assert room.channel.queue == ("dev", "qa")


def test_a_turn_goes_round_and_everybody_has_it_once_before_anybody_has_it_again():
    room = Room("pm", "dev", "qa")
    seen = []
    for _ in range(6):
        seen += room.active
        room.by(room.active[0], "turn_complete")
    assert seen == ["pm", "dev", "qa"] * 2


def test_a_member_that_is_alone_wraps_to_itself_with_a_new_turn():
    room = Room("pm")
    room.now += 50
    room.by("pm", "turn_complete")
    assert room.active == ["pm"]
    assert (room.member("pm").turn, room.member("pm").turn_ends_at) == (2, room.now + 60)


def test_nobody_who_is_offline_gets_a_turn():
    room = Room("pm", "dev", "qa")
    room.ask("remove", member="dev")
    room.by("pm", "turn_complete")
    assert room.active == ["qa"]


def test_the_order_by_priority_lets_the_most_important_speak_first_in_each_round():
    room = Room(order="priority")
    for name, priority in (("low", 1), ("high", 9), ("mid", 5)):
        room.ask("assign", member=name, agent_kind="scripted")
        room.record([_with(room.member(name), priority=priority)])
    room.say("go")
    spoken = []
    for _ in range(6):
        (name,) = room.active
        spoken.append(name)
        room.speaks(name, f"word of {name}")
    assert spoken == ["low", "high", "mid", "high", "mid", "low"]  # low came first, alone


def test_in_the_order_of_priority_who_was_away_has_no_turns_to_make_up_for():
    room = Room("pm", "dev", "qa", order="priority")
    room.ask("remove", member="qa")
    for _ in range(20):
        room.by(room.active[0], "turn_complete")
    room.ask("assign", member="qa")
    seen = []
    for _ in range(7):
        seen += room.active
        room.by(room.active[0], "turn_complete")
    assert max(seen.count(name) for name in ("pm", "dev", "qa")) <= 3


def test_in_the_manual_order_nobody_is_promised_the_next_turn_while_somebody_has_it():
    room = Room("pm", "dev", order="manual")
    room.ask("override", member="pm", state="active")
    with raises_code(Conflict, "turn_taken", "pm") as refused:
        room.ask("override", member="dev", state="active")
    assert "override room pm queued" in refused.value.hint
    room.by("pm", "turn_complete")
    room.ask("override", member="dev", state="active")
    assert room.active == ["dev"]


@pytest.mark.parametrize("name", ["timeout_s", "wait_timeout_s", "heartbeat_s"])
def test_a_channel_without_time_for_a_turn_is_not_opened(name):
    with raises_code(UsageError, "invalid_value"):
        Room("pm", "dev", **{name: 0.0})


def test_in_the_manual_order_a_person_gives_every_turn():
    room = Room("pm", "dev", order="manual")
    assert room.active == []
    room.ask("override", member="dev", state="active")
    assert room.active == ["dev"]
    room.by("dev", "turn_complete")
    assert room.active == []


def test_every_move_is_in_the_log_with_where_from_where_to_and_why():
    room = Room("pm", "dev")
    room.by("pm", "turn_complete")
    assert room.moves("pm") == [
        (None, "offline", "member_added"),
        ("offline", "idle", "agent_starts"),
        ("idle", "queued", "assigned_to_channel"),
        ("queued", "active", "turn_granted"),
        ("active", "queued", "turn_complete"),
    ]


# Edge cases of the seed


def test_edge_case_1_an_active_member_that_misses_its_heartbeat_has_crashed():
    room = Room("pm", "dev", timeout_s=1000.0)
    room.now += 60
    room.by("dev", "heartbeat")
    room.tick(61)
    assert room.moves("pm")[-1] == ("active", "offline", "agent_crashes")
    assert room.texts == ["⚠️ pm disconnected, skipping turn"]
    assert room.active == ["dev"]


def test_edge_case_1_who_comes_back_after_a_crash_is_idle_until_it_is_assigned():
    room = Room("pm", "dev", announces_disconnects=False)
    room.tick(121)
    room.by("pm", "join")
    assert room.states["pm"] == "idle"
    room.ask("assign", member="pm")
    assert room.states["pm"] == "active"
    assert room.texts == []


def test_edge_case_3_a_persons_word_in_the_middle_of_a_turn_does_what_the_channel_says():
    outcome = {}
    for mode in ("queue", "interrupt", "inject", "parallel"):
        room = Room("pm", "dev", interrupting=mode)
        room.say("stop")
        told = room.by("pm", "heartbeat")["messages"]
        outcome[mode] = (room.states["pm"], room.texts, [one["text"] for one in told])
    assert outcome == {
        "queue": ("active", [], []),
        "interrupt": ("waiting", ["stop"], []),
        "inject": ("active", ["stop"], ["stop"]),
        "parallel": ("active", ["stop"], []),
    }


def test_edge_case_2_a_turn_that_times_out_goes_to_the_next_one_and_keeps_its_place():
    room = Room("pm", "dev")
    assert room.looks_again_at == room.now + 60
    room.tick(59.9)
    assert room.active == ["pm"]
    room.tick(0.1)
    assert room.moves("pm")[-1] == ("active", "queued", "timeout")
    assert room.texts == ["⏱️ pm turn timed out"]
    assert (room.active, room.channel.queue) == (["dev"], ("pm",))


def test_edge_case_2_the_time_is_each_members_own_where_it_has_one():
    room = Room(timeout_s=30.0)
    room.ask("assign", member="slow")
    room.record([_with(room.member("slow"), timeout_s=90.0)])
    room.by("slow", "join")
    room.tick(89)
    assert room.active == ["slow"]
    room.tick(1)
    assert room.moves("slow")[-2:-1] == [("active", "queued", "timeout")]


def test_edge_case_4_an_agent_that_forgets_turn_complete_times_out_with_a_warning():
    room = Room("pm", "dev")
    room.by("pm", "post", text="that is all I have")
    room.tick(60)
    (timed_out,) = [fact for fact in room.facts if fact.trigger == "timeout" and fact.target]
    assert timed_out.extra == {"warning": "completed response without TURN_COMPLETE"}
    assert room.active == ["dev"]


def test_edge_case_4_where_it_is_asked_for_silence_after_a_word_ends_the_turn():
    room = Room("pm", "dev", detects_turn_end=True, silence_s=10.0)
    room.tick(20)
    assert room.active == ["pm"]  # it has not said anything yet
    room.by("pm", "post", text="well")
    room.tick(5)
    room.by("pm", "post", text="now")
    room.tick(9)
    assert room.active == ["pm"]
    room.tick(1)
    assert room.active == ["dev"]
    assert {"detected": "silence"} in [fact.extra for fact in room.facts]


def test_edge_case_5_when_all_are_offline_words_are_kept_and_who_comes_first_is_active():
    room = Room("pm", "dev", interrupting="parallel")
    room.tick(121)
    assert set(room.states.values()) == {"offline"}
    assert room.texts[-1] == "⚠️ No agents available in this channel"
    room.say("is anybody there?")
    assert (room.active, room.texts[-1]) == ([], "is anybody there?")
    room.by("dev", "join")
    room.ask("assign", member="dev")
    assert room.active == ["dev"]
    assert room.by("dev", "read")["messages"][-1]["text"] == "is anybody there?"


def test_edge_case_6_who_is_added_in_the_middle_of_a_turn_comes_after_all_who_wait():
    room = Room("pm", "dev")
    room.by("pm", "turn_complete")
    room.ask("assign", member="qa")
    room.by("qa", "join")
    assert (room.active, room.channel.queue) == (["dev"], ("pm", "qa"))


def test_edge_case_6_who_is_removed_from_the_queue_is_gone_and_the_others_move_up():
    room = Room("pm", "dev", "qa")
    room.ask("remove", member="dev")
    assert room.states == {"pm": "active", "dev": "idle", "qa": "queued"}
    assert room.channel.queue == ("qa",)


def test_edge_case_6_the_turn_of_who_is_removed_ends_and_the_next_one_has_it():
    room = Room("pm", "dev", "qa")
    room.ask("remove", member="pm")
    assert room.moves("pm")[-1] == ("active", "idle", "removed_from_channel")
    assert room.active == ["dev"]


# Waiting


def test_a_wait_pauses_the_turn_and_nobody_else_gets_it_meanwhile():
    room = Room("pm", "dev")
    room.by("pm", "wait", **{"for": "the build", "seconds": 90})
    assert room.states == {"pm": "waiting", "dev": "queued"}
    room.by("dev", "heartbeat")
    room.tick(80)
    assert room.active == []
    room.by("pm", "wait", over=True)
    assert room.active == ["pm"]
    assert room.member("pm").turn_ends_at == room.now + 60


def test_a_wait_that_takes_too_long_forfeits_the_turn():
    room = Room("pm", "dev")
    room.by("pm", "wait", seconds=50)
    room.tick(50)
    assert room.moves("pm")[-1] == ("waiting", "queued", "wait_timeout")
    assert room.active == ["dev"]


def test_nobody_waits_longer_than_the_channel_allows():
    room = Room("pm", wait_timeout_s=30.0)
    room.by("pm", "wait", seconds=9999)
    assert room.member("pm").wait_ends_at == room.now + 30


def test_a_persons_word_ends_a_wait():
    room = Room("pm", "dev")
    room.by("pm", "wait")
    room.say("here it is")
    assert room.active == ["pm"]


@pytest.mark.parametrize(("wish", "state"), [("queued", "queued"), ("active", "active")])
def test_a_person_can_end_a_wait_either_way(wish, state):
    room = Room("pm", "dev")
    room.by("pm", "wait")
    assert room.ask("override", member="pm", state=wish) == state
    assert room.moves("pm")[-1] == ("waiting", state, "human_override")


def test_a_person_can_end_a_turn_and_choose_who_speaks_next():
    room = Room("pm", "dev", "qa")
    room.ask("override", member="qa", state="active")
    assert room.channel.queue == ("qa", "dev")
    room.ask("override", member="pm", state="queued")
    assert room.active == ["qa"]
    with raises_code(Conflict, "member_busy", "qa"):
        room.ask("override", member="qa", state="active")


def test_who_waits_can_say_that_its_turn_is_over():
    room = Room("pm", "dev")
    room.by("pm", "wait")
    room.by("pm", "turn_complete")
    assert room.active == ["dev"]


# Modes


def test_in_a_broadcast_channel_all_may_speak_at_once():
    room = Room("pm", "dev", "qa", mode="broadcast")
    assert room.active == ["pm", "dev", "qa"]
    room.by("dev", "post", text="me first TURN_COMPLETE")
    assert room.active == ["pm", "dev", "qa"]
    assert room.member("dev").turn == 2


def test_a_single_channel_has_one_agent_which_is_idle_until_it_is_spoken_to():
    room = Room(driven=("pm",), mode="single", topic="hello")
    room.speaks("pm", "hello back")
    assert room.states == {"pm": "idle"}
    room.say("and now?")
    assert room.states == {"pm": "active"}
    assert room.start("pm") == ["and now?"]
    with raises_code(Conflict, "one_agent_only"):
        room.ask("assign", member="dev", agent_kind="scripted")


def test_a_single_channel_keeps_to_one_agent_whoever_comes_back():
    room = Room(driven=("pm",), mode="single")
    room.ask("remove", member="pm")
    room.ask("assign", member="dev", agent_kind="scripted")
    with raises_code(Conflict, "one_agent_only") as refused:
        room.ask("assign", member="pm")
    assert "crew channel remove room dev" in refused.value.hint
    assert room.states == {"pm": "idle", "dev": "active"}


def test_a_single_channel_is_not_opened_for_two():
    with raises_code(UsageError, "agent_count"):
        Room("pm", "dev", mode="single")


def test_in_a_direct_channel_only_who_is_spoken_to_hears_it_and_answers():
    room = Room(driven=("pm", "dev", "qa"), mode="direct")
    assert room.active == []
    room.say("@dev @qa: who takes it?")
    assert room.active == ["dev", "qa"]
    assert room.speaks("dev", "@pm may I?") == ["@dev @qa: who takes it?"]
    assert room.active == ["pm", "qa"]
    assert room.start("pm") == ["@pm may I?"]
    with raises_code(UsageError, "no_recipient"):
        room.say("anybody")
    room.say("for you", to=["dev"])
    assert room.posts[-1].to == ("dev",)


# Opening and closing


def test_a_name_is_taken_while_its_channel_is_open():
    room = Room("pm")
    with raises_code(Conflict, "channel_exists", "room") as refused:
        room.ask("new", members=[])
    assert "channel close room" in refused.value.hint


def test_a_closed_channel_has_no_turns_and_hears_nothing():
    room = Room("pm", "dev")
    room.ask("close")
    assert room.states == {"pm": "idle", "dev": "idle"}
    assert (room.channel.state, room.looks_again_at) == ("closed", None)
    room.tick(1000)
    for deed in (lambda: room.say("hello"), lambda: room.by("pm", "read")):
        with raises_code(Conflict, "channel_closed"):
            deed()


def test_who_is_named_twice_or_not_known_is_told_so():
    with raises_code(UsageError, "named_twice", "pm"):
        Room("pm", "pm")
    room = Room("pm")
    with raises_code(NotFound, "not_found"):
        room.ask("remove", member="dev")
    with raises_code(NotFound, "not_found"):
        room.ask("say", channel="other", text="x", sender="ann")
    with raises_code(Conflict, "member_present", "room"):
        room.ask("assign", member="pm")


def test_who_is_removed_while_offline_is_not_queued_when_it_comes():
    room = Room("pm")
    room.ask("assign", member="dev")
    room.ask("remove", member="dev")
    room.by("dev", "join")
    assert room.states["dev"] == "idle"
    with raises_code(Conflict, "member_absent"):
        room.ask("remove", member="dev")


def test_nobody_is_offline_because_no_runner_was_there_to_hear_it():
    room = Room("pm", "dev")
    room.tick(5000, is_running=False)
    room.record(awake(room.world, at=room.now))
    room.tick(100)
    assert "offline" not in room.states.values()


def test_who_cannot_be_given_a_turn_is_refused_with_what_to_do_first():
    room = Room("pm", driven=("dev",))
    room.ask("assign", member="guest")
    room.ask("remove", member="dev")
    for name, words in (
        ("guest", "invite room guest"),
        ("dev", "assign room dev"),
        ("pm", "override room pm queued"),
    ):
        with pytest.raises(Conflict) as refused:
            room.ask("override", member=name, state="active")
        assert words in refused.value.hint


def test_a_runner_that_starts_says_nothing_about_channels_that_are_closed():
    room = Room("pm", "dev")
    room.ask("close")
    assert awake(room.world, at=room.now + 5000) == []
    assert room.looks_again_at is None


# Disabled by a person


def test_a_member_that_is_disabled_is_offline_and_the_next_one_has_the_turn():
    room = Room("pm", "dev", "qa")
    assert room.ask("disable", member="pm") == "offline"
    assert (room.states["pm"], room.active, room.channel.queue) == ("offline", ["dev"], ("qa",))
    assert room.moves("pm")[-1] == ("active", "offline", "disabled")
    assert room.texts == ["⚠️ pm disabled, skipping turn"]
    room.check()


@pytest.mark.parametrize("state", ["idle", "queued", "waiting", "offline"])
def test_a_member_can_be_disabled_in_every_state(state):
    room = Room("pm", "dev")
    if state == "waiting":
        room.by("pm", "wait", seconds=60)
    name = "dev" if state == "queued" else "pm"
    if state == "idle":
        room.ask("remove", member=name)
    if state == "offline":
        room.tick(1000)
    assert room.states[name] == state
    room.ask("disable", member=name)
    assert (room.states[name], room.member(name).disabled) == ("offline", True)
    room.check()


def test_a_connected_member_comes_back_when_it_is_enabled_and_joins():
    room = Room("pm", "dev")
    room.ask("disable", member="pm")
    for verb in ("join", "read", "turn_complete"):
        with raises_code(Conflict, "member_disabled") as refused:
            room.by("pm", verb)
        assert "channel enable room pm" in refused.value.hint
    with raises_code(Conflict, "member_disabled", "pm") as refused:
        room.ask("assign", member="pm")
    assert "channel enable room pm" in refused.value.hint
    assert room.ask("enable", member="pm") == "offline"
    assert room.by("pm", "join")["state"] == "queued"


def test_a_driven_member_comes_back_to_the_end_of_the_queue_and_answers_what_it_was_asked():
    room = Room(driven=("pm", "dev"), topic="hello")
    room.start("pm")
    room.ask("disable", member="pm")
    assert room.due == ["vacate room/pm", "turn room/dev"]
    room.record([_with(room.member("pm"), housed=False, speaking=False)])
    assert room.ask("enable", member="pm") == "queued"
    assert (room.moves("pm")[-2:], room.channel.queue) == (
        [("offline", "idle", "enabled"), ("idle", "queued", "assigned_to_channel")],
        ("pm",),
    )
    room.speaks("dev", "a word")
    assert room.due == ["turn room/pm"]


def test_a_driven_member_that_took_no_part_is_idle_when_it_is_enabled():
    room = Room(driven=("pm", "dev"))
    room.ask("remove", member="pm")
    room.ask("disable", member="pm")
    assert room.ask("enable", member="pm") == "idle"


def test_a_member_is_disabled_and_enabled_once():
    room = Room("pm")
    with raises_code(Conflict, "member_enabled", "pm", "room"):
        room.ask("enable", member="pm")
    room.ask("disable", member="pm")
    assert room.texts[-1] == "⚠️ No agents available in this channel"
    with raises_code(Conflict, "member_disabled", "pm", "room") as refused:
        room.ask("disable", member="pm")
    assert "channel enable room pm" in refused.value.hint
    with pytest.raises(Conflict) as refused:
        room.ask("override", member="pm", state="active")
    assert "channel enable room pm" in refused.value.hint


# Refusals fit the state of the member


@pytest.mark.parametrize(
    ("state", "verb", "words"),
    [
        ("active", "assign", "override room pm queued` ends its turn"),
        ("queued", "assign", "override room pm active` lets it speak next"),
        ("waiting", "assign", "override room pm active` ends its wait"),
        ("idle", "remove", "assign room pm` queues it"),
        ("offline", "remove", "invite room pm` prints how"),
    ],
)
def test_a_person_is_told_what_can_be_done_with_a_member_in_its_state(state, verb, words):
    room = Room("dev", "pm") if state == "queued" else Room("pm", "dev")
    if state == "waiting":
        room.by("pm", "wait")
    if state == "idle":
        room.ask("remove", member="pm")
    if state == "offline":
        room.tick(1000)
    assert room.states["pm"] == state
    with pytest.raises(Conflict) as refused:
        room.ask(verb, member="pm")
    assert words in refused.value.hint


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("queued", "read-messages with waitSeconds"),
        ("waiting", "over=true"),
        ("idle", "`crew channel assign room pm`"),
    ],
)
@pytest.mark.parametrize("verb", ["post", "wait"])
def test_a_member_is_told_what_it_can_do_in_its_state(state, words, verb):
    room = Room("dev", "pm") if state == "queued" else Room("pm", "dev")
    if state == "waiting":
        room.by("pm", "wait")
    if state == "idle":
        room.ask("remove", member="pm")
    with pytest.raises(Conflict) as refused:
        room.by("pm", verb, **({"text": "hm"} if verb == "post" else {}))
    assert words in refused.value.hint


# Names


def test_a_closed_channel_frees_its_name_and_is_found_by_its_number():
    room = Room("pm", topic="first")
    room.ask("close")
    assert room.ask("new", members=[{"name": "pm"}], topic="second", sender="ann") == "room@2"
    for named, topic in (("room", "second"), ("room@2", "second"), ("room@1", "first")):
        assert find_channel(room.world, named).topic == topic
    room.say("hello")
    assert room.world.channels["room@2"].sequence == 2
    assert [room.world.members[one].channel for one in room.world.members] == ["room", "room@2"]
    with raises_code(Conflict, "channel_closed", "room@1"):
        room.ask("say", channel="room@1", text="x", sender="ann")
    for unknown in ("room@3", "room@0", "room@x", "room@", "@2", "hall"):
        with pytest.raises(NotFound):
            find_channel(room.world, unknown)
    room.ask("close")
    assert room.ask("new", members=[], sender="ann") == "room@3"
    assert fold(room.facts) == room.world


def test_a_token_of_a_closed_channel_opens_none_of_its_name():
    room = Room("pm")
    room.ask("close")
    room.ask("new", members=[{"name": "pm"}], sender="ann")
    with raises_code(Conflict, "channel_closed", "room"):
        room.by("pm", "join")
    room.world = World()
    with raises_code(NotFound, "not_found", "room"):
        room.by("pm", "join")


def test_a_person_cannot_choose_a_name_with_a_number():
    room = Room("pm")
    with raises_code(UsageError, "invalid_name"):
        room.ask("new", channel="room@2", members=[])
