"""A merge that drops a part of one side: what passes, what is refused, and what a person takes."""

import json
import shlex
from contextlib import closing

import pytest

from crew.store.fact_log import facts_after
from crew.workplace import find_workplace
from front.conftest import until, worktree
from front.quest_scene import complete, drained, questing, step

AGENT = """\
cd "$CREW_WORKTREE"
if [ -e "$SCENE/began-$CREW_TASK_ID" ]; then
  cp "$CREW_PROMPT_FILE" "$SCENE/prompt-$CREW_TASK_ID" 2>/dev/null
  . "$SCENE/resolve.sh"
  echo DONE
  exit 0
fi
touch "$SCENE/at-$CREW_TASK_ID"
until [ -e "$SCENE/at-1" ] && [ -e "$SCENE/at-2" ]; do sleep 0.05; done
cp "$SCENE/work-$CREW_TASK_ID" shared
git add shared && git commit -q -m "task $CREW_TASK_ID"
touch "$SCENE/began-$CREW_TASK_ID"
echo DONE
"""

LARGER = (
    'git merge -q main || { cp "$SCENE/work-2" shared; git add shared; git commit -qm both; }\n'
)
DROPS = "git merge -q --no-edit -s ours main || true\n"


def two_tasks(scene, first, second, resolve):
    """Two tasks that begin from the same commit write the same file; the second to land merges."""
    (scene.folder / "agent.sh").write_text(AGENT)
    (scene.folder / "work-1").write_text(first)
    (scene.folder / "work-2").write_text(second)
    (scene.folder / "resolve.sh").write_text(resolve)
    scene.ok("new", "--title", "one")
    scene.ok("new", "--title", "two")
    return scene.crew("run", "--drain", "-q", "--agents", "2")


def asks(scene, task):
    """Why the run of the task was sent back, each time."""
    workplace = find_workplace(scene.root)
    with closing(workplace.db):
        facts = facts_after(workplace.db, subject=f"run:{task}.1")
    return [fact.changes["ask"] for _, fact in facts if fact.trigger == "sent_back"]


def test_a_result_that_equals_the_side_that_contains_the_other_is_merged(scene):
    said = two_tasks(scene, "a\n", "a\nb\n", LARGER)
    assert said.code == 0, said
    assert scene.git("show", "main:shared").split() == ["a", "b"]
    told = [*asks(scene, "1"), *asks(scene, "2")]
    assert "conflict" in told
    assert "lost_side" not in told


@pytest.fixture
def refused(scene):
    """The agent of the task that merges drops what landed; a person is asked in the end."""
    gate = scene.folder / "gate.sh"
    red = scene.folder / "red"
    gate.write_text(f"! [ -e {shlex.quote(str(red))} ]\n")
    scene.configure(f'[complete]\ncommand = "sh {gate}"\n[sandbox]\nmode = "off"\n')
    said = two_tasks(scene, "one\n", "two\n", DROPS)
    assert said.code == 6, said
    (question,) = scene.ok("inbox", "--json").json
    return scene, question["task"], {"1": "2", "2": "1"}[question["task"]], question


def test_what_an_agent_drops_is_refused_with_its_lines_and_then_a_person_is_asked(refused):
    scene, task, landed, question = refused
    assert asks(scene, task) == ["conflict", "lost_side", "lost_side", "lost_side"]
    words = {"1": "one", "2": "two"}[landed]
    prompt = (scene.folder / f"prompt-{task}").read_text()
    for told in (prompt, question["context"]):
        assert "> shared" in told
        assert f"1 line of task {landed}, which landed, is missing:" in told
        assert f">         {words}" in told
    assert (question["kind"], question["choices"]) == ("lost_side", ["accept", "agent", "give up"])
    shown = scene.ok("inbox", question["id"])
    assert words in shown.out
    assert '"accept" | "agent"' in shown.err
    head = scene.git("rev-parse", f"crew-{task}")
    assert scene.ok("show", task, "--json").json["merge_refused"] == head
    assert f"crew merge {task} --accept" in scene.ok("show", task).out
    assert f"crew merge {task} --accept" in scene.refused(5, "conflict", "merge", task).hint
    assert scene.git("show", "main:shared") == words


def test_a_person_takes_the_merge_without_a_runner(refused):
    scene, task, _, question = refused
    done = scene.ok("merge", task, "--accept", "--json").json
    assert (done["status"], done["id"]) == ("merged", task)
    assert scene.git("show", "main:shared") == {"1": "one", "2": "two"}[task]
    assert scene.ok("inbox", question["id"], "--json").json["answer"] == "accept"
    assert scene.ok("inbox", "--json").json == []
    assert scene.ok("merge", task, "--accept").code == 0


def test_a_person_takes_the_merge_beside_a_runner(refused, running):
    scene, task, *_ = refused
    running("--agents", "1")
    scene.ok("merge", task, "--accept")
    assert scene.status(task) == "merged"


def test_the_answer_in_the_inbox_does_the_same(refused):
    scene, task, _, question = refused
    scene.refused(2, "invalid_choice", "answer", question["id"], "yes please")
    scene.ok("answer", question["id"], "accept")
    assert scene.ok("show", task, "--json").json["merge_refused"] is None
    assert drained(scene).code == 0
    assert scene.status(task) == "merged"


def test_a_red_gate_blocks_what_was_accepted(refused):
    scene, task, landed, _ = refused
    (scene.folder / "red").touch()
    said = scene.refused(6, "check_failed", "merge", task, "--accept")
    assert "exited with 1" in said.message
    assert scene.git("show", "main:shared") == {"1": "one", "2": "two"}[landed]
    assert scene.ok("show", task, "--json").json["merge_refused"] is None
    (scene.folder / "red").unlink()
    scene.refused(5, "nothing_to_accept", "merge", task, "--accept")


def test_only_the_commit_that_was_refused_is_accepted(refused):
    scene, task, landed, _ = refused
    folder = worktree(scene, task)
    git = ("-c", "user.name=me", "-c", "user.email=me@x", "-C", str(folder))
    (folder / "more").write_text("more\n")
    scene.git(*git, "add", "more")
    scene.git(*git, "commit", "-qm", "more")
    said = scene.refused(6, "check_failed", "merge", task, "--accept")
    assert "drops a part of one side" in said.message
    assert f"crew merge {task} --accept" in said.hint
    assert scene.git("show", "main:shared") == {"1": "one", "2": "two"}[landed]
    head = scene.ok("show", task, "--json").json["merge_refused"]
    assert head == scene.git("-C", str(folder), "rev-parse", "HEAD")
    scene.ok("merge", task, "--accept")
    assert scene.status(task) == "merged"


def test_the_agent_may_try_again_or_the_task_is_given_up_and_still_taken(refused):
    scene, task, _, question = refused
    scene.ok("answer", question["id"], "agent")
    assert drained(scene).code == 6
    assert asks(scene, task).count("lost_side") == 6
    (again,) = scene.ok("inbox", "--json").json
    scene.ok("answer", again["id"], "give up")
    assert scene.status(task) == "error"
    assert f"crew merge {task} --accept" in scene.ok("show", task).out
    scene.ok("merge", task, "--accept")
    assert scene.status(task) == "merged"


def test_a_repaired_merge_needs_nobody(refused):
    scene, _, _, question = refused
    (scene.folder / "resolve.sh").write_text(
        'cat "$SCENE/work-1" "$SCENE/work-2" > shared; git commit -qam both\n'
    )
    scene.ok("answer", question["id"], "agent")
    assert drained(scene).code == 0
    assert sorted(scene.git("show", "main:shared").split()) == ["one", "two"]


def test_after_a_sound_merge_what_a_gate_asks_for_may_change_either_side(scene):
    scene.configure("[complete]\ncommand = '! grep -qs one shared || ! grep -qs two shared'\n")
    both = (
        "git merge -q main || { cat $SCENE/work-1 $SCENE/work-2 > shared; git commit -qam both; }"
    )
    fewer = 'cp "$SCENE/work-2" shared; git commit -qam fewer'
    resolve = f'if [ -e "$SCENE/merged" ]; then {fewer}; else touch "$SCENE/merged"; {both}; fi\n'
    said = two_tasks(scene, "one\n", "two\n", resolve)
    assert said.code == 0, said
    assert {tuple(asks(scene, task)) for task in "12"} == {(), ("conflict", "red_gate")}
    assert scene.git("show", "main:shared") == "two"


def test_nothing_is_accepted_that_was_not_refused(scene):
    scene.ok("new", "--title", "one")
    scene.refused(5, "nothing_to_accept", "merge", "1", "--accept")
    scene.crew("run", "--drain", "-q")
    assert scene.ok("merge", "1", "--accept").code == 0
    scene.refused(3, "not_found", "merge", "9", "--accept")


def both_wait(scene, key):
    here = shlex.quote(str(scene.folder))
    other = {"a": "b", "b": "a"}[key]
    return {"run": f"touch {here}/at-{key}; until [ -e {here}/at-{other} ]; do sleep 0.05; done"}


def quest_of_two(scene, resolve, *, texts=("a\n", "a\nb\n")):
    """Both items of a quest write the same file from the same commit."""
    turns = {
        key: {
            "writer": [
                complete(
                    both_wait(scene, key),
                    {"write": {"path": "shared.txt", "text": text}},
                    {"commit": key},
                )
            ]
        }
        for key, text in zip("ab", texts, strict=True)
    }
    questing(scene, turns, step("a"), step("b"))
    script = scene.folder / "script.json"
    told = json.loads(script.read_text())
    for key in "ab":
        again = complete({"run": resolve})
        told["tasks"][f"Step {key}"] |= {"on_conflict": [again] * 9, "on_lost_side": [again] * 9}
    script.write_text(json.dumps(told))
    scene.configure('[sandbox]\nmode = "off"\n')
    scene.ok("quest", "new", "Request", "--workflow", "small")


TAKES_B = "git merge -q crew-1 || { printf 'a\\nb\\n' > shared.txt; git commit -qam both; }"


def test_items_of_a_quest_that_contain_each_other_are_merged(scene):
    quest_of_two(scene, TAKES_B)
    said = drained(scene)
    assert said.code == 0, said
    assert scene.git("show", "main:shared.txt").split() == ["a", "b"]
    told = [ask for task in ("2", "3") for ask in asks(scene, task)]
    assert "lost_side" not in told


def test_an_item_of_a_quest_that_drops_another_is_refused_and_taken_by_a_person(scene):
    drops = "git merge -q --no-edit -s ours crew-1 || true"
    quest_of_two(scene, drops, texts=("one\n", "two\n"))
    said = drained(scene)
    assert said.code == 6, said
    (question,) = scene.ok("inbox", "--json").json
    task = question["task"]
    assert question["kind"] == "lost_side"
    assert "which landed, is missing" in question["context"]
    shown = scene.ok("quest", "show", "1", "--json").json
    assert "blocked" in {one["walk"] for one in shown["steps"]}
    scene.ok("merge", task, "--accept")
    assert scene.status(task) == "merged"
    assert drained(scene).code == 0
    assert scene.git("show", "main:shared.txt") == {"2": "one", "3": "two"}[task]


def test_the_merge_of_a_quest_itself_is_taken_by_a_person(scene):
    here = shlex.quote(str(scene.folder))
    waits = {"run": f"touch {here}/last; until [ -e {here}/go ]; do sleep 0.05; done"}
    write = complete({"write": {"path": "shared.txt", "text": "quest\n"}}, {"commit": "a"})
    questing(scene, {"a": {"writer": [write]}}, step("a"))
    script = scene.folder / "script.json"
    told = json.loads(script.read_text())
    drops = complete({"run": "git merge -q --no-edit -s ours main || true"})
    request = told["tasks"]["Request"]
    request["as_planner"] = [request["as_planner"][0], [waits, *complete()]]
    told["tasks"]["Request"] = {**request, "on_conflict": [drops] * 9, "on_lost_side": [drops] * 9}
    script.write_text(json.dumps(told))
    scene.configure('[sandbox]\nmode = "off"\n')
    scene.ok("quest", "new", "Request", "--workflow", "small")
    running = scene.start("run", "--drain")
    until((scene.folder / "last").exists)
    (scene.root / "shared.txt").write_text("person\n")
    scene.git("add", "shared.txt")
    scene.git("commit", "-qm", "by a person")
    scene.let_go()
    running.communicate(timeout=100)
    (question,) = scene.ok("inbox", "--json").json
    assert (question["kind"], question["task"]) == ("lost_side", "1")
    assert "1 line of what landed is missing" in question["context"]
    scene.ok("merge", "1", "--accept")
    assert scene.git("show", "main:shared.txt") == "quest"
    assert scene.ok("quest", "show", "1", "--json").json["state"] == "complete"
