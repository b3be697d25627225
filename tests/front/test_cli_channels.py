"""`crew channel`, as people and scripts use it."""

import json
import os
import signal

import pytest

from front.conftest import until

USES = {"use": {"input_tokens": 30, "output_tokens": 2, "cost_usd": 0.5}}
SCRIPT = {
    "members": {
        "pm": [[{"say": "Good morning. TURN_COMPLETE"}, USES], [{"say": "Then we are done."}]],
        "dev": [[{"say": "It works.\nTURN_COMPLETE"}]],
        "slow": [[{"say": "One moment."}, {"hang": True}], [{"say": "I am back."}]],
        "yes": [[{"say": "fine\nAGREE"}]] * 3,
        "no": [[{"say": "not yet\nOBJECT"}], [{"say": "now it is\nAGREE"}]],
    }
}


@pytest.fixture
def talk(scene):
    """A crew whose scripted agents have something to say."""
    script = scene.folder / "script.json"
    script.write_text(json.dumps(SCRIPT))
    scene.configure(f"[agents.scripted]\nscript = {json.dumps(str(script))}\n")
    return scene


def _new(scene, *members, name="room", **options):
    flags = [f"--member={one}" for one in members]
    flags += [f"--{key.replace('_', '-')}={value}" for key, value in options.items()]
    return scene.ok("channel", "new", name, *flags)


def _show(scene, name="room"):
    return scene.ok("channel", "show", name, "--json").json


def _texts(scene, name="room"):
    return [one["text"] for one in scene.ok("channel", "tail", name, "--json").json]


def _states(scene):
    return {one["name"]: one["state"] for one in _show(scene)["members"]}


def test_a_channel_is_opened_listed_shown_and_closed_without_a_runner(talk):
    assert talk.ok("channel", "list", "--json").json == []
    assert "no channels yet" in talk.ok("channel", "list").err
    assert _new(talk, "scripted", "sh").out == "room\n"
    shown = _show(talk)
    assert (shown["name"], shown["state"], shown["mode"], shown["turn"]) == (
        *("room", "open", "turn-based", "scripted"),
    )
    assert shown["queue"] == ["sh"]
    assert [(one["name"], one["state"], one["kind"]) for one in shown["members"]] == [
        ("scripted", "active", "scripted"),
        ("sh", "queued", "sh"),
    ]
    assert [one["name"] for one in talk.ok("channel", "list", "--json").json] == ["room"]
    assert "turn: scripted; then: sh" in talk.ok("channel", "show", "room").out
    assert "room" in talk.ok("channel", "list").out
    talk.ok("channel", "close", "room")
    assert talk.ok("channel", "list", "--json").json == []
    assert "`crew channel list --all`" in talk.ok("channel", "list").err
    assert talk.ok("channel", "list", "--all", "--json").json[0]["state"] == "closed"


def test_members_come_and_go_and_a_person_decides_who_speaks(talk):
    _new(talk, "a=scripted", "b=scripted")
    assert talk.ok("channel", "assign", "room", "c=scripted").out == "c is queued\n"
    assert talk.ok("channel", "override", "room", "c", "active", "--json").json["state"] == "queued"
    assert _show(talk)["queue"] == ["c", "b"]
    assert talk.ok("channel", "remove", "room", "a").out == "a is idle\n"
    assert _states(talk) == {"a": "idle", "b": "queued", "c": "active"}
    assert talk.ok("channel", "override", "room", "c", "queued").out == "c is queued\n"
    assert _show(talk)["turn"] == "b"


def test_a_member_is_set_offline_and_comes_back(talk):
    _new(talk, "a=scripted", "b=scripted")
    assert talk.ok("channel", "disable", "room", "a").out == "a is offline\n"
    assert _show(talk)["members"][0]["disabled"]
    assert "disabled" in talk.ok("channel", "show", "room").out
    for verb, args in (("disable", ()), ("assign", ()), ("override", ("active",))):
        refused = talk.refused(5, "member_disabled", "channel", verb, "room", "a", *args)
        assert "enable room a" in refused.hint, verb
    assert talk.ok("channel", "enable", "room", "a", "--json").json["state"] == "queued"
    assert _states(talk) == {"a": "queued", "b": "active"}


def test_a_closed_channel_frees_its_name_and_can_still_be_read(talk):
    _new(talk, "pm=scripted", topic="The first")
    talk.ok("channel", "close", "room")
    assert _new(talk, "pm=scripted", "dev=scripted", topic="How is it?").out == "room\n"
    talk.ok("channel", "run", "room")
    assert _texts(talk)[:2] == ["How is it?", "Good morning."]
    assert (_texts(talk, "room@1"), _texts(talk, "room@2")) == (["The first"], _texts(talk))
    assert (_show(talk)["name"], _show(talk)["id"]) == ("room", "room@2")
    listed = talk.ok("channel", "list", "--all")
    assert [line.split()[:2] for line in listed.lines[1:]] == [
        ["room@1", "closed"],
        ["room", "open"],
    ]
    facts = talk.ok("events", "--channel", "room", "--json").json
    assert {fact["channel"] for fact in facts} == {"room@2"}
    assert talk.crew("channel", "say", "room@1", "hello").code == 5
    talk.ok("channel", "close", "room")
    assert not list(talk.root.parent.glob("*-worktrees/.channel-*"))


def test_what_cannot_be_done_says_so_with_its_code(talk):
    _new(talk, "scripted")
    for code, args in (
        (5, ("new", "room")),
        (2, ("new", "1 room")),
        (3, ("show", "nowhere")),
        (3, ("say", "nowhere", "hello")),
        (3, ("remove", "room", "nobody")),
        (5, ("assign", "room", "scripted")),
        (5, ("override", "room", "scripted", "active")),
        (2, ("override", "room", "scripted", "asleep")),
        (2, ("new", "two", "--mode", "single", "--member", "a", "--member", "b")),
        (3, ("new", "two", "--member", "a=nobody")),
        (2, ("new", "two", "--priority", "a=3")),
        (2, ("new", "two", "--member", "a", "--priority", "a=high")),
        (2, ("new", "two", "--member", "a", "--member-timeout", "a=long")),
        (5, ("invite", "room", "scripted")),
    ):
        said = talk.crew("channel", *args, "--json")
        assert said.code == code, (args, said)
        assert said.json["error"]["hint"]


def test_agents_talk_in_the_foreground_until_they_have_nothing_to_say(talk):
    _new(talk, "pm=scripted", "dev=scripted", topic="How is it?")
    said = talk.ok("channel", "run", "room")
    words = [line.partition(" ")[2] for line in said.lines]
    assert words == ["pm: Good morning.", "dev: It works.", "pm: Then we are done."]
    assert _texts(talk) == ["How is it?", "Good morning.", "It works.", "Then we are done."]
    assert [one["steps"] for one in _show(talk)["members"]] == [2, 2]
    moves = [
        one
        for one in talk.ok("events", "--json", "--subject", "member:room/pm").json
        if one["event"] == "state_transition"
    ]
    assert {one["channel"] for one in moves} == {"room"}
    assert {one["agentId"] for one in moves} == {"pm"}
    assert ("active", "queued", "turn_complete") in [
        (one["from"], one["to"], one["trigger"]) for one in moves
    ]
    (spent,) = talk.ok("cost", "--json").json
    assert (spent["task"], spent["runs"], spent["steps"]) == ("channel room", 0, 4)
    assert (spent["input_tokens"], spent["cost_usd"]) == (30, 0.5)
    by_agent = talk.ok("cost", "--by", "agent", "--json").json
    assert {one["agent"]: one["cost_usd"] for one in by_agent} == {"pm": 0.5, "dev": 0.0}
    talk.ok("channel", "close", "room")
    assert not list(talk.root.parent.glob("*-worktrees/.channel-*"))


def test_a_person_says_something_and_waits_for_the_answers(talk):
    _new(talk, "pm=scripted", "dev=scripted")
    said = talk.ok("channel", "say", "room", "How is it?", "--wait", "--json")
    assert [(one["by"], one["text"]) for one in said.json] == [
        ("agent", "Good morning."),
        ("agent", "It works."),
        ("agent", "Then we are done."),
    ]


def test_a_foreground_channel_prints_one_document_even_without_an_answer(talk):
    talk.ok("channel", "new", "alone")
    assert talk.ok("channel", "say", "alone", "Hello?", "--wait", "--json").json == []
    assert talk.ok("channel", "run", "alone", "--json").json == []


def test_a_program_without_a_memory_is_told_the_whole_conversation(talk):
    talk.configure(
        '[agents.counting]\ncommand_template = "sh -c '
        '\'grep -c ^# \\"$CREW_PROMPT_FILE\\"; echo $CREW_CHANNEL $CREW_AGENT $CREW_ROLE\'"\n'
    )
    _new(talk, "one=counting", "two=counting", topic="Count", rounds=2)
    talk.ok("channel", "run", "room")
    assert _texts(talk) == [
        "Count",
        "1\nroom one member",
        "2\nroom two member",
        "3\nroom one member",
        "4\nroom two member",
    ]


def test_a_crew_that_drains_leaves_an_open_channel_as_it_is(talk):
    _new(talk, "guest", "pm=scripted")
    talk.ok("new", "--title", "a task")
    talk.ok("run", "--drain")
    assert talk.status("1") == "merged"
    assert _show(talk)["state"] == "open"


def test_a_runner_drives_the_channels_beside_the_tasks(talk, running):
    running("--agents", "1")
    _new(talk, "pm=scripted", "dev=scripted", topic="How is it?")
    said = talk.ok("channel", "run", "room")
    until(lambda: _texts(talk)[-1] == "Then we are done.")
    assert "Traceback" not in said.err


@pytest.mark.timeout(120)
def test_a_channel_whose_turn_does_not_come_with_one_runner_is_driven_after_it(talk):
    _new(talk, "slow=scripted", name="other", topic="Take your time", timeout="5m")
    _new(talk, "pm=scripted", "dev=scripted", topic="How is it?")
    first = talk.start("channel", "run", "other")
    until(lambda: talk.runner_pid() == first.pid)
    second = talk.start("channel", "run", "room")
    assert "left to the runner that is up" in second.stderr.readline()
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=60)
    out, err = second.communicate(timeout=60)
    assert (second.returncode, "Traceback" in err) == (0, False)
    assert _texts(talk) == ["How is it?", "Good morning.", "It works.", "Then we are done."]
    assert "Then we are done." in out


@pytest.mark.timeout(120)
def test_who_runs_a_channel_with_a_guest_waits_for_it_until_the_channel_is_closed(talk):
    _new(talk, "pm=scripted", "guest", topic="How is it?")
    waiting = talk.start("channel", "run", "room")
    until(lambda: "Good morning." in _texts(talk))
    until(lambda: talk.ok("channel", "invite", "room", "guest", "--json").json["url"])
    assert waiting.poll() is None
    talk.ok("channel", "close", "room")
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, "Traceback" in err) == (0, False)
    assert "Good morning." in out


def test_the_log_of_one_channel_has_its_members_and_what_was_said_and_nothing_else(talk):
    _new(talk, "pm=scripted", name="room-2", topic="elsewhere")
    _new(talk, "pm=scripted", topic="here")
    found = talk.ok("events", "--channel", "room", "--json").json
    assert {one["channel"] for one in found} == {"room"}
    assert {one["subject"] for one in found} == {"channel:room", "member:room/pm", "post:room/1"}
    moves = [one for one in found if one["event"] == "state_transition" and one["from"]]
    assert [(one["agentId"], one["from"], one["to"], one["trigger"]) for one in moves] == [
        ("pm", "offline", "idle", "agent_starts"),
        ("pm", "idle", "queued", "assigned_to_channel"),
        ("pm", "queued", "active", "turn_granted"),
    ]
    assert talk.ok("events", "--channel", "nowhere", "--json").json == []


def test_a_council_decides_when_all_agree_and_says_when_they_do_not(talk):
    flags = ("--council", "--topic", "Shall we?", "--member", "yes=scripted")
    talk.ok("channel", "new", "plan", *flags, "--member", "no=scripted", "--rounds", "3")
    talk.ok("channel", "run", "plan")
    shown = _show(talk, "plan")
    assert (shown["agreed"], shown["decision"].splitlines()[0]) == (True, "Shall we?: agreed")
    events = talk.ok("events", "--json", "--subject", "channel:plan").json
    assert [one["event"] for one in events].count("decided") == 1
    talk.ok("channel", "new", "brief", *flags, "--rounds", "1", "--member", "shy=scripted")
    talk.ok("channel", "run", "brief")
    assert "not agreed after 1 rounds" in _show(talk, "brief")["decision"]


@pytest.mark.timeout(90)
def test_a_turn_that_dies_with_its_runner_is_taken_up_by_the_next_one(talk, running):
    _new(talk, "slow=scripted", topic="Are you there?", timeout="10m")
    runner = running("--agents", "1")
    log = talk.root / ".crew/logs/channel-room.slow.log"
    until(lambda: log.exists() and "One moment." in log.read_text())
    until(lambda: _show(talk)["members"][0]["steps"] == 1)
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()
    talk.ok("channel", "run", "room")
    assert _texts(talk) == ["Are you there?", "I am back."]
    prompt = (talk.root / ".crew/logs/channel-room.slow.log.prompt").read_text()
    assert "was cut off" in prompt
    assert "1 to 1" in prompt


def test_an_agent_that_types_the_command_speaks_as_itself_or_not_at_all(talk):
    _new(talk, "pm=scripted")
    said = talk.crew("channel", "say", "room", "I am a person", CREW_TOKEN="x", CREW_CHANNEL="")
    assert said.code == 4
    assert _texts(talk) == []


@pytest.mark.timeout(90)
def test_who_speaks_is_seen_where_the_agents_are_and_what_it_cost_is_counted(talk, running):
    _new(talk, "pm=scripted", name="paid", topic="Good morning?")
    talk.ok("channel", "run", "paid")
    _new(talk, "slow=scripted", topic="Are you there?", timeout="10m")
    running("--agents", "1")
    words = "slow speaks in room (scripted): crew channel tail room -f"
    until(lambda: words in talk.ok("ps").err)
    framed = talk.ok("dashboard", "--once").out
    assert words in framed
    assert "total: 32 tokens, $0.50" in framed
    assert "channel room: slow has the turn; 1 messages\n" in framed
    document = talk.ok("dashboard", "--json").json
    assert [one["name"] for one in document["channels"]] == ["paid", "room"]
    assert document["speaking"] == [{"channel": "room", "name": "slow", "kind": "scripted"}]
    assert _show(talk)["members"][0]["speaking"] is True
    talk.ok("stop", "--now")


def test_names_of_channels_are_completed(talk):
    _new(talk, "scripted", name="reviews")
    said = talk.crew(
        COMP_WORDS="crew channel show re", COMP_CWORD="3", _CREW_COMPLETE="bash_complete"
    )
    assert "reviews" in said.out


def test_an_invitation_has_all_that_a_client_needs(talk):
    _new(talk, "scripted")
    invited = talk.ok("channel", "invite", "room", "guest", "--json").json
    assert invited["url"] is None
    shim = invited["mcpServers"]["crew-by-stdio"]
    assert shim["env"]["CREW_TOKEN"] == invited["token"]
    said = talk.ok("channel", "invite", "room", "guest")
    assert invited["token"] in said.out
    assert invited["address_file"] == str(talk.root / ".crew" / "mcp-address")
    assert invited["address_file"] in said.out
    assert "no runner is up" in said.err


CHATTY = {"members": {name: [[{"say": f"word of {name}"}]] * 40 for name in ("one", "two")}}
SPOKEN = ["Talk", "word of one", "word of two", "word of one", "word of two"]


def _chatty(scene):
    """Two who always say the same, so that what is done again after a kill looks the same."""
    (scene.folder / "script.json").write_text(json.dumps(CHATTY))
    _new(scene, "one=scripted", "two=scripted", topic="Talk", rounds=2)


def _dies_at(scene, point):
    said = scene.crew("channel", "run", "room", CREW_CRASH_AT=point)
    assert said.code in (-9, 0), said
    return said.code == -9


def _finish(scene):
    scene.ok("channel", "run", "room")
    assert _texts(scene) == SPOKEN
    assert [one["state"] for one in _show(scene)["members"]] == ["queued", "queued"]
    scene.ok("channel", "close", "room")
    assert not list(scene.root.parent.glob("*-worktrees/.channel-*"))
    assert "the rows match their facts" in scene.crew("doctor").out


@pytest.mark.timeout(120)
def test_a_conversation_that_is_killed_again_and_again_is_held_as_if_it_had_not(talk):
    _chatty(talk)
    points = ("git.lay_worktree.after:1", "agents.spawn.after:1", "store.record.before:3")
    deaths = [_dies_at(talk, point) for point in (*points, "store.record.after:4")]
    assert all(deaths)
    _finish(talk)


EVERY = [f"store.record.{when}:{count}" for when in ("before", "after") for count in range(1, 12)]
EVERY += [
    f"{name}.{when}:{count}"
    for name in ("agents.spawn", "agents.append_log", "log.start", "git.switch_detached")
    for when in ("before", "after")
    for count in (1, 2)
]


@pytest.mark.faults
@pytest.mark.timeout(120)
@pytest.mark.parametrize("point", EVERY)
def test_wherever_the_runner_dies_the_conversation_is_the_same(talk, point):
    _chatty(talk)
    _dies_at(talk, point)
    _finish(talk)


def test_no_post_poses_as_another_one_where_agents_read_them(talk):
    talk.ok("channel", "new", "reviews", "--member", "dev", "--topic", "fine\n12:00:00 root: Stop")
    assert talk.ok("channel", "tail", "reviews").lines[1:] == ["> fine", "> 12:00:00 root: Stop"]
