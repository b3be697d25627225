"""`crew quest`: a request begins, is drawn while it goes on, and says what it waits for."""

import json
import time

import pytest

from crew.front.cli.call import Call
from crew.front.cli.crew.unfinished import why_not
from crew.front.cli.quests.quest_table import quest_table, steps_words
from crew.runner.views.quest_views import quest_view
from domain.quest_life import Life, steps
from front.conftest import until
from front.quest_scene import asked, complete, drained, questing, signal, step, written

WHOLE = {
    *("id", "title", "state", "workflow", "stage", "slots", "steps_done", "steps_all"),
    *("cost_usd", "known_cost_usd", "input_tokens", "output_tokens", "created", "questions"),
    *("base", "request", "plan_number", "steps", "given_up", "steps_merged", "steps_closed"),
}
WALKED = {
    *("task", "status", "walk", "stage", "role", "agent", "kind", "branch", "session", "sessions"),
    *("said", "gates", "followups", "error", "task_cost_usd", "agent_steps"),
    *("role_title", "changed_at"),
}
PLANNED = {"id", "title", "description", "dependencies", "files", "acceptance"}


@pytest.fixture
def small(scene):
    """A quest of two steps, the second of which asks, needs help, and is red once."""
    turns = [
        asked("Which colour?"),
        [signal("needs-role-followup --role helper --reason 'too hard' --resume")],
        written("b.txt", "BROKEN\n"),
        complete({"write": {"path": "b.txt", "text": "blue\n"}}, {"commit": "mended"}),
    ]
    roles = {
        "a": {"writer": [written("a.txt")]},
        "b": {"writer": turns, "helper": [complete()]},
    }
    questing(scene, roles, step("a"), step("b", "a"))
    return scene


def test_a_new_quest_prints_its_id_and_says_how_to_go_on(small):
    said = small.ok("quest", "new", "Request", "--workflow", "small", "--slots", "2")
    assert said.out == "1\n"
    assert said.err == (
        "small takes 2 sessions plus 1 for each item: 7 for a plan of 5 items, "
        "more when work is sent back\n"
        "`crew run` carries it out; `crew quest show 1` shows its progress\n"
    )
    task = small.ok("show", "1", "--json").json
    assert task["labels"] == ["quest"]
    assert task["quest"]["id"] == "1"
    assert (task["quest"]["step"], task["quest"]["stage"]) == (None, "plan")
    assert (
        "quest: its request, at plan (`crew quest show 1` shows more)" in small.ok("show", "1").out
    )


def test_a_quest_starts_from_the_branch_that_is_checked_out_and_lands_there(scene):
    """Its items land on the quest's own branch, and main gets nothing of it."""
    scene.git("checkout", "-q", "-b", "feature")
    scene.git("commit", "-q", "--allow-empty", "-m", "on the feature")
    main, feature = scene.git("rev-parse", "main"), scene.git("rev-parse", "feature")
    questing(scene, {"a": {"writer": [written("a.txt")]}}, step("a"))
    made = scene.ok("quest", "new", "Request", "--workflow", "small", "--json").json
    assert made["base"] == "feature"
    assert drained(scene).code == 0
    assert scene.ok("show", "2", "--json").json["base"] == "crew-1"
    assert scene.git("rev-parse", "main") == main
    assert scene.git("show", "feature:a.txt") == "x"
    assert scene.git("merge-base", feature, "feature") == feature


def test_a_new_quest_is_one_whole_document_in_json(small):
    made = small.ok("quest", "new", "Request\n\nMore of it.", "--workflow", "small", "--json").json
    assert made.keys() == WHOLE | WALKED
    assert (made["id"], made["state"], made["workflow"], made["slots"]) == ("1", "open", "small", 3)
    assert made["title"] == "Request"
    assert made["request"] == "Request\n\nMore of it."
    assert (made["steps"], made["steps_all"], made["walk"]) == ([], 0, "pending")
    assert made == small.ok("quest", "show", "1", "--json").json
    shown = small.ok("quest", "show", "#1").out
    head = "quest 1  Request  open\n  workflow small, no plan yet, 3 slots, cost $0.00, begun "
    assert shown.startswith(head)


@pytest.mark.parametrize(
    ("args", "exit_code", "code", "named"),
    [
        (["quest", "new", " "], 2, "empty_request", ""),
        (["quest", "new", "x", "--slots", "0"], 2, "usage", "--slots"),
        (["quest", "new", "x", "--slots", "51"], 2, "usage", "--slots"),
        (["quest", "new", "x", "--workflow", "smal"], 3, "not_found", "smal"),
        (["quest", "show", "9"], 3, "not_found", "'9'"),
        (["quest", "cancel", "9"], 3, "not_found", "'9'"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing_behind(small, args, exit_code, code, named):
    assert named in small.refused(exit_code, code, *args).message
    assert small.ok("list", "-a", "--json").json == []
    assert small.ok("quest", "list", "--json").json == []


def test_a_role_whose_agent_nobody_knows_is_told_before_the_quest_begins(small):
    file = small.root / ".crew/workflows/small.toml"
    file.write_text(file.read_text().replace('owns = "the plan"', 'agent = "claud"'))
    refused = small.refused(3, "not_found", "quest", "new", "Request", "--workflow", "small")
    assert "'claud'" in refused.message
    assert "claude" in refused.hint
    assert small.ok("list", "-a", "--json").json == []


def test_a_role_whose_program_is_missing_is_found_before_anything_is_made(small):
    small.configure('[agents.claude]\ncommand = "no-such-program"\n')
    new = ("quest", "new", "Request", "--workflow", "claudex")
    refused = small.refused(1, "not_installed", *new)
    assert "no-such-program" in refused.message
    assert "claude-reviewer" in refused.message
    assert "`crew config set agents.reviewer_default KIND`" in refused.hint
    assert small.ok("list", "-a", "--json").json == []


def test_a_role_that_only_reviews_has_a_reviewer_of_its_own(small):
    small.configure('[agents.claude]\ncommand = "sh"\n')
    small.ok("quest", "new", "Request", "--workflow", "claudex")
    facts = small.ok("events", "--subject", "quest:1", "--json").json
    assert len(facts) == 1
    from crew.store.fact_log import load_world  # noqa: PLC0415
    from crew.workplace import find_workplace  # noqa: PLC0415 - reads what was kept

    workplace = find_workplace(small.root)
    kept = json.loads(load_world(workplace.db).quests["1"].definition)["roles"]
    workplace.db.close()
    assert (kept["worker"]["agent"], kept["reviewer"]["agent"]) == ("", "claude-reviewer")


def test_a_quest_is_drawn_while_it_waits_and_when_it_is_over(small):
    small.ok("quest", "new", "Request", "--workflow", "small")
    stopped = drained(small)
    assert stopped.code == 6
    asks = 'not merged: 3 Step b (in_progress): it asks: Which colour? (crew answer q1 "…")'
    assert asks in stopped.err
    assert "not merged: 1 Request (in_progress): its items are not finished" in stopped.err
    waiting = small.ok("quest", "show", "1", "--json").json
    assert (waiting["steps_done"], waiting["steps_all"], waiting["stage"]) == (1, 2, "walk")
    assert [one["id"] for one in waiting["questions"]] == ["q1"]
    assert waiting["questions"][0]["answer_with"] == 'crew answer q1 "…"'
    second = waiting["steps"][1]
    assert second.keys() == PLANNED | WALKED
    assert (second["walk"], second["role"], second["stage"]) == (
        *("waiting_for_user", "writer"),
        "write",
    )
    shown = small.ok("quest", "show", "1", "--full").out
    assert "├─ a  Step a (task 2)  cost $0.00\n│  merged\n" in shown
    assert (
        "└─ b  Step b (task 3), after a  cost $0.00\n   in_progress, waiting_for_user, at write"
        in shown
    )
    short = small.ok("quest", "show", "1").out
    assert [line.split()[:2] for line in short.splitlines()[4:7]] == [
        *(["ITEM", "TASK"], ["a", "2"], ["b", "3"]),
    ]
    assert "b     3     asks q1  " in short
    assert 'q1 (task 3, writer): Which colour?\n  crew answer q1 "…"\n' in shown
    listed = small.ok("quest", "list")
    assert listed.lines[1].split() == ["1", "open", "small", "1/2", "$0.00", "Request"]
    assert "q1 wait for an answer" in listed.err
    step_b = small.ok("show", "3").out
    assert "quest: item b of quest 1, at write (writer, writes the text)" in step_b
    assert "of 1000000" not in step_b
    framed = small.ok("dashboard", "--once").out
    assert "quest 1 Request: 1 of 2 items done, at walk, asks q1\n" in framed
    (quest,) = small.ok("dashboard", "--json").json["quests"]
    assert quest["steps_merged"] == 1

    small.ok("answer", "q1", "blue")
    over = drained(small)
    assert over.code == 0, over.err
    told = small.ok("quest", "show", "1", "--json").json
    assert (told["state"], told["steps_done"], told["questions"]) == ("complete", 2, [])
    second = told["steps"][1]
    (helped,) = second["followups"]
    assert (helped["role"], helped["asked_by"], helped["state"]) == ("helper", "writer", "complete")
    assert [one["outcome"] for one in second["gates"]] == ["red", "green"]
    signals = [(one["role"], one["signal"]) for one in second["said"]]
    assert signals == [
        ("writer", "needs-user-input"),
        ("writer", "needs-role-followup"),
        ("helper", "complete"),
        ("writer", "complete"),
        ("check", "red"),
        ("writer", "complete"),
    ]
    assert {one["role"] for one in second["sessions"]} == {"writer", "helper"}
    assert "at write" not in small.ok("show", "3").out
    shown = small.ok("quest", "show", "1", "--full").out
    spoke = ", ".join(f"{one['role']} {one['session']}" for one in second["sessions"])
    assert f"  sessions: {spoke}\n" in shown
    assert "└─ helper first, for writer: complete, then writer continues" in shown
    assert "check green" in shown
    assert (small.root / "b.txt").read_text() == "blue\n"


@pytest.mark.parametrize(
    "point", ["tasks.put_in_place.after:4", "store.record.before:1", "store.record.after:2"]
)
def test_a_quest_that_is_asked_for_again_after_a_crash_is_the_same_one(small, point):
    again = ("quest", "new", "Request\n\nwith words", "--workflow", "small")
    assert small.crew(*again, CREW_CRASH_AT=point).code == -9
    begun = small.ok("quest", "list", "--json").json
    assert begun or small.ok(*again).out == "1\n"
    assert [quest["id"] for quest in small.ok("quest", "list", "--json").json] == ["1"]
    assert [task["id"] for task in small.ok("list", "-a", "--json").json] == ["1"]
    assert small.ok(*again).out == "2\n"  # the same words once more are another request


@pytest.mark.parametrize("is_up", [False, True])
def test_an_answer_in_bytes_that_are_no_text_is_taken_and_nobody_behind_it_waits(
    small, running, is_up
):
    small.ok("quest", "new", "Request", "--workflow", "small")
    drained(small)
    if is_up:
        running()
    small.ok("answer", "q1", "blue \udcff")
    small.ok("spawn")
    facts = small.ok("events", "--subject", "question:q1", "--json").json
    assert facts[-1]["to"] == "answered"


def test_a_question_is_read_whole_and_answered_at_the_shell_or_over_mcp(small):
    small.ok("quest", "new", "Request", "--workflow", "small")
    drained(small)
    listed = small.ok("inbox")
    assert "q1  3     writer" in listed.out
    assert '`crew inbox q1` shows all of it; answer with: crew answer q1 "…"' in listed.err
    shown = small.ok("inbox", "q1")
    assert shown.lines[0].startswith("q1  writer of task 3 asks, ")
    assert shown.lines[2] == "> Which colour?"
    assert shown.err == 'answer with: crew answer q1 "…"\n'
    assert small.crew("inbox", "q9").code == 3

    waiting = json.dumps(small.ok("inbox", "--json").json)
    assert _over_mcp(small, "list-questions") == (waiting, False)
    told, is_error = _over_mcp(small, "answer-question", question="q1", text=" ")
    assert (is_error, "the answer is empty" in told) == (True, True)
    answered = _over_mcp(small, "answer-question", question="q1", text="Blue.")
    assert answered == ("question q1 is answered", False)
    assert _over_mcp(small, "list-questions") == ("[]", False)
    assert small.ok("inbox", "q1", "--json").json["answer"] == "Blue."
    assert small.ok("inbox", "q1").out.endswith("answered: Blue.\n")


def _over_mcp(scene, tool: str, **arguments: str) -> tuple[str, bool]:
    params = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    result = scene.ok("mcp", stdin=json.dumps(call) + "\n").json["result"]
    text = result["content"][0]["text"]
    if text.startswith("["):  # a document, however it is spaced
        text = json.dumps(json.loads(text))
    return text, result["isError"]


def test_when_a_quest_is_cancelled_nobody_works_at_it_any_more(scene, running):
    roles = {"a": {"writer": [[{"write": {"path": "a.txt", "text": "half\n"}}, {"sleep_s": 300}]]}}
    questing(scene, roles, step("a"), step("b", "a"))
    scene.ok("quest", "new", "Request", "--workflow", "small")
    running()
    until(lambda: list(scene.root.parent.glob("*-worktrees/*/a.txt")))
    assert "`crew checkpoints TASK`" in scene.ok("quest", "cancel", "1").err
    assert {agent["status"] for agent in scene.ok("ps", "--json").json} == {"idle"}
    assert {task["status"] for task in scene.ok("list", "-a", "--json").json} == {"closed"}
    assert scene.ok("checkpoints", "2", "--json").json


def test_a_step_that_was_put_behind_another_says_what_it_waits_for():
    life = Life().planned(a="")
    task = life.task("a")
    life.turn(task, "needs-role-followup", role="pathseeker")
    life.begin(task)
    life.plan(task, steps(first="", a="first"))
    life.say(task, "complete", summary="put one before it")
    life.end(task)
    life.look(task)
    told = why_not(life.world, life.world.tasks[task])
    assert told == f"blocked by {life.task('first')}"


def _twelve():
    """A quest of twelve items, of which some are merged, some are worked at, and one asks."""
    deps = dict.fromkeys("abcdefghijkl", "")
    deps |= {"d": "b", "e": "b", "f": "d e", "j": "f", "l": "j k"}
    life = Life(now=time.time() - 7200).planned(**deps)
    for key in "abc":
        life.finish(key)
    life.turn(life.task("d"), "needs-user-input", question="Which one of them?")
    life.begin(life.task("e"))
    return life


def _shown(life, monkeypatch, *, columns=80):
    monkeypatch.setattr("crew.front.cli.quests.quest_table.terminal_width", lambda: columns)
    view = quest_view(life.world, life.quest, request="", passed={})
    return list(quest_table(view, Call())), view


def test_a_quest_of_twelve_items_has_one_line_for_each_within_eighty_columns(monkeypatch):
    lines, _ = _shown(_twelve(), monkeypatch)
    assert lines[1].startswith("  workflow q, 3 of 12 items done, 3 slots, cost $0.00, begun ")
    assert lines[1].endswith("h ago")
    assert lines[2] == "  now: at walk, 3 items under way"
    items = lines[5:17]
    assert [line.split()[0] for line in items] == list("abcdefghijkl")
    assert max(map(len, lines)) <= 80
    state = {line.split()[0]: " ".join(line.split()[2:]) for line in items}
    assert state["a"].startswith("merged 1h $0.00")
    assert state["d"].startswith("asks q1 ")
    assert state["e"].startswith("codeweaver, builds an item 1h $0.00 ")
    assert state["f"] == "after d, e - - Do f"
    assert state["i"].startswith("waits for a slot - -")
    assert lines[-1] == '  crew answer q1 "…"'


def test_a_quest_that_is_given_up_has_done_what_is_merged_and_stands_nowhere(monkeypatch):
    life = _twelve()
    life.ask("quest_cancel", quest="1")
    for task in life.world.tasks:
        life.kill(task) if task in life.working else None
    lines, view = _shown(life, monkeypatch)
    assert (view["state"], steps_words(view)) == ("cancelled", "3/12")
    assert "3 of 12 items merged" in lines[1]
    assert not any("now:" in line or "asks" in line for line in lines)


def test_a_quest_whose_last_item_a_person_closes_says_so(small):
    """Nobody takes a closed item for built: neither in `close` nor in `list`, `show` or JSON."""
    small.ok("quest", "new", "Request", "--workflow", "small")
    assert drained(small).code == 6
    said = small.ok("close", "3", "--reason", "no longer wanted").err
    assert "the last open item of quest 1" in said
    assert "1 of 2 items were built, 1 closed by a person" in said
    closed = [{"id": "b", "task": "3", "reason": "no longer wanted"}]
    assert small.ok("quest", "show", "1", "--json").json["steps_closed"] == closed
    shown = small.ok("quest", "show", "1").out
    assert "2 of 2 items done, 1 of them closed by a person" in shown
    assert "closed by a person, not built: b (task 3): no longer wanted" in shown
    assert "2/2 (1 closed)" in small.ok("quest", "list").out
    assert "1 of them closed by a person" in small.ok("dashboard", "--once").out
    assert drained(small).code == 0
    assert small.ok("quest", "list", "--json").json[0]["steps_closed"] == closed


def test_an_item_that_is_closed_before_the_last_one_does_not_end_the_plan(small):
    asks = {"writer": [asked("Which one?")]}
    questing(small, {"a": asks, "b": asks}, step("a"), step("b"))
    small.ok("quest", "new", "Request", "--workflow", "small")
    drained(small)
    assert "last open item" not in small.ok("close", "2").err
    assert "0 of 2 items were built, 2 closed by a person" in small.ok("close", "3").err


def test_a_quest_is_shown_also_when_the_file_of_its_request_was_removed(small):
    small.ok("quest", "new", "Request", "--workflow", "small")
    for file in (small.root / ".crew" / "tasks" / "default").glob("1.*"):
        file.unlink()
    assert small.ok("quest", "show", "1", "--json").json["request"] == ""
    said = drained(small)
    assert (said.code, "its file is missing" in said.err) == (6, True)
    assert small.ok("quest", "show", "1", "--json").json["state"] == "open"
    assert small.ok("quest", "cancel", "1", "--json").json["state"] == "cancelled"
    assert drained(small).code == 0


def test_a_cancelled_quest_closes_everything_it_had(small):
    small.ok("quest", "new", "Request", "--workflow", "small")
    drained(small)
    assert small.ok("quest", "cancel", "1", "--json").json == {"id": "1", "state": "cancelled"}
    assert small.ok("quest", "list", "--json").json[0]["state"] == "cancelled"
    assert small.status("3") == "closed"
    assert small.ok("inbox", "--json").json == []
    small.refused(5, "quest_over", "quest", "cancel", "1")


def test_a_task_that_only_looks_like_one_of_a_quest_says_why_it_does_not_start(scene):
    scene.ok("new", "--title", "labelled", "--label", "quest")
    scene.ok("new", "--title", "a step", "--label", "quest-7")
    said = drained(scene)
    assert said.code == 6
    assert "it has the label quest, but no quest belongs to it: `crew quest new`" in said.err
    assert "its label names quest 7, which does not exist" in said.err
    assert scene.ok("show", "2", "--json").json["quest"]["reason"].startswith("its label names")
    assert "remove the label quest-7" in scene.ok("show", "2").out
    scene.refused(5, "cannot_start", "assign", "A", "1")


def test_ids_and_workflows_complete_in_the_shell(small):
    small.ok("quest", "new", "Request", "--workflow", "small")

    def completed(*words: str) -> list[str]:
        typed = " ".join(("crew", *words))
        env = {
            "_CREW_COMPLETE": "bash_complete",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(words)),
        }
        return [line.partition(",")[2] for line in small.ok(**env).lines]

    assert completed("quest", "show", "") == ["1"]
    assert completed("quest", "new", "x", "--workflow", "s") == ["solo", "small"]
    assert completed("workflows", "q") == ["quest"]


@pytest.mark.parametrize("session", ["item", "quest"])
def test_the_plan_workflow_takes_a_planner_a_builder_for_each_item_and_one_review(scene, session):
    plan = scene.folder / "plan.json"
    plan.write_text(json.dumps([step("a"), step("b", "a")]))
    planned = {"as_planner": [complete({"run": f"crew quest plan '{plan}'"})]}
    built = {f"Step {name}": {"as_builder": [written(f"{name}.txt")]} for name in "ab"}
    script = scene.folder / "script.json"
    script.write_text(json.dumps({"tasks": {"Request": planned, **built}}))
    (scene.root / ".crew/config.toml").write_text(
        "[run]\nagents = 1\n[agents]\nworker_default = 'scripted'\nreviewer_default = 'judge'\n"
        f"[agents.scripted]\nscript = {json.dumps(str(script))}\n"
        "[agents.judge]\nrole = 'reviewer'\ncommand_template = 'echo PASS'\n"
        f"[roles.builder]\nsession = '{session}'\n[complete]\ncommand = 'true'\n"
    )
    scene.ok("quest", "new", "Request", "--workflow", "plan", "--slots", "1")
    assert drained(scene).code == 0
    shown = scene.ok("quest", "show", "1", "--json").json
    assert (shown["state"], shown["steps_done"]) == ("complete", 2)
    roles = [[one["role"] for one in part["sessions"]] for part in (shown, *shown["steps"])]
    assert roles == [["planner"], ["builder"], ["builder"]]
    assert [one["outcome"] for one in shown["gates"]] == ["pass"]
    builders = {one["session"] for part in shown["steps"] for one in part["sessions"]}
    assert len(builders) == (1 if session == "quest" else 2)


NONE_KEPT = "builder has a new session for each item: mine cannot take one along\n"


@pytest.mark.parametrize(
    ("kind", "count", "note"),
    [
        ("mine", "1 for each item: 7 for a plan of 5", NONE_KEPT),
        ("scripted", "up to 3 kept over all items: 5 for a plan of 5", ""),
    ],
)
def test_only_sessions_that_an_agent_can_keep_are_counted_as_kept(scene, kind, count, note):
    (scene.root / ".crew/config.toml").write_text(
        f"[agents]\nworker_default = '{kind}'\nreviewer_default = 'mine'\n"
        "[agents.mine]\ncommand_template = 'echo PASS'\n[roles.builder]\nsession = 'quest'\n"
    )
    said = scene.ok("quest", "new", "Request", "--workflow", "plan").err
    counted = f"plan takes 2 sessions plus {count} items, more when work is sent back\n"
    assert said.startswith(f"{counted}{note}`crew run` carries it out")
