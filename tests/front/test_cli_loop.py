"""One task through work and review in the foreground, and what agents and people say meanwhile."""

import contextlib
import json
import os
import signal

import pytest

from front.conftest import PATIENCE_S, last_run, until

AGENT = """\
say() { sh -eu "$SCENE/$1"; }
if [ "$CREW_ROLE" = reviewer ]; then say reviewer; exit; fi
cp "$CREW_PROMPT_FILE" "$SCENE/prompt-$CREW_RUN_ID-$CREW_ROUND-$CREW_STEP"
echo "$CREW_SESSION ${CREW_RESUME-new}" >> "$SCENE/sessions"
say worker
"""

WORK = """\
echo "$CREW_ROUND" > "file-$CREW_TASK_ID"
echo "$CREW_RUN_ID $CREW_STEP" > "step-$CREW_TASK_ID"
git add -A && git commit -q -m "round $CREW_ROUND"
"""
DONE = f"{WORK}echo DONE\n"
ASK = 'crew signal needs-user-input --question "Which one?" --context "two are there" >&2\n'

CONFIG = """\
[run]
backoff_s = 0.05
stuck_after = 2
[agents]
worker_default = "ann"
reviewer_default = "bob"
[agents.ann]
command_template = "sh {agent}"
prompt_via = "file"
env = {{ SCENE = "{scene}" }}
[agents.bob]
inherit = "ann"
"""

INBOX_FIELDS = ["id", "task", "run", "role", "question", "context", "asked_at", "kind"]
RUN_FIELDS = "id task state round max_rounds steps history session verdicts error started ended"


@pytest.fixture
def stage(scene):
    """Two agents, ann who works and bob who reviews, each a script that the test writes."""
    agent = scene.folder / "agent.sh"
    agent.write_text(AGENT)
    config = CONFIG.format(agent=agent, scene=scene.folder)
    (scene.root / ".crew" / "config.toml").write_text(config)
    play(scene, worker=DONE, reviewer="echo PASS")
    return scene


def play(scene, **parts):
    for name, script in parts.items():
        (scene.folder / name).write_text(script)


def told(scene, step):
    """What the worker was told in this step, `run-round-step`."""
    return (scene.folder / f"prompt-{step}").read_text()


def manifest(scene, run="1.1"):
    return json.loads((scene.root / ".crew" / "runs" / run / "manifest.json").read_text())


def is_manifest(state, scene):
    with contextlib.suppress(FileNotFoundError):
        return manifest(scene)["state"] == state
    return False


# Work and review


def test_a_loop_without_review_ends_with_the_work_merged(stage):
    said = stage.ok("loop", "Fix the login\n\nIt is broken.", "--review", "none", "--json")
    run = said.json
    assert set(run) >= set(RUN_FIELDS.split())
    assert run["history"] == ["init", "working", "reviewing", "complete"]
    assert (run["state"], run["round"], run["verdicts"]) == ("complete", 1, [])
    assert stage.git("show", "main:file-1") == "1"
    assert "It is broken." in told(stage, "1.1-1-1")
    assert manifest(stage)["state"] == "completed"


def test_a_loop_without_words_makes_no_task(stage):
    for args, stdin in ((["loop", ""], ""), (["loop", " \n"], ""), (["loop", "-"], "\n")):
        stage.refused(2, "empty_prompt", *args, stdin=stdin)
    assert stage.ok("list", "-a", "--json").json == []


def test_what_the_reviewer_said_goes_back_and_the_next_commit_is_reviewed_anew(stage):
    play(stage, reviewer='[ "$(cat file-1)" = 2 ] && echo PASS || echo "no tests\nFAIL"')
    run = stage.ok("loop", "Fix it", "--review", "single", "--json").json
    assert [(v["reviewer"], v["passed"]) for v in run["verdicts"]] == [
        ("bob", False),
        ("bob", True),
    ]
    first, second = (v["commit"] for v in run["verdicts"])
    assert first != second
    assert "no tests" in told(stage, "1.1-2-1")
    assert run["history"].count("reviewing") == 2


BOTH = """\
git rev-parse HEAD > "$SCENE/here-$CREW_AGENT"
n=0; while [ ! -e "$SCENE/here-ann" ] || [ ! -e "$SCENE/here-bob" ]; do
  sleep 0.05; n=$((n+1)); [ $n -lt 1000 ] || { echo "nobody came"; echo FAIL; exit; }
done
echo PASS
"""


def test_claudex_has_both_review_the_same_commit_at_the_same_time(stage):
    """Each waits until the other is there too; one after the other, nobody would pass."""
    play(stage, reviewer=BOTH)
    run = stage.ok("loop", "Fix it", "--review", "claudex", "--json").json
    assert {v["reviewer"] for v in run["verdicts"]} == {"ann", "bob"}
    here = {(stage.folder / f"here-{name}").read_text() for name in ("ann", "bob")}
    assert here == {f"{run['verdicts'][0]['commit']}\n"}
    assert all(v["passed"] for v in run["verdicts"])


def test_claudex_with_the_worker_as_its_own_reviewer_asks_a_second_one(stage):
    play(stage, reviewer=BOTH)
    flags = ("--review", "claudex", "--reviewer", "ann")
    run = stage.ok("loop", "Fix it", *flags, "--json").json
    assert {v["reviewer"] for v in run["verdicts"]} == {"ann", "bob"}


@pytest.mark.parametrize("mode", [(), ("--review", "claudex")])
def test_every_reviewer_that_is_named_is_asked(stage, mode):
    with (stage.root / ".crew" / "config.toml").open("a") as file:
        file.write('[agents.cleo]\ninherit = "ann"\n')
    named = ("--reviewer", "bob", "--reviewer", "cleo", "--reviewer", "bob")
    run = stage.ok("loop", "Fix it", *mode, *named, "--json").json
    assert sorted(v["reviewer"] for v in run["verdicts"]) == ["bob", "cleo"]


@pytest.mark.parametrize(("mode", "named"), [("none", ("bob",)), ("single", ("ann", "bob"))])
def test_more_reviewers_than_the_mode_asks_are_refused_and_none_is_dropped(stage, mode, named):
    flags = [part for name in named for part in ("--reviewer", name)]
    stage.refused(2, "too_many_reviewers", "loop", "Fix it", "--review", mode, *flags)
    assert stage.ok("list", "-a", "--json").json == []


@pytest.mark.parametrize("word", ["ALL\nDONE", "DONE\n", "A\u2028B", " \n "])
def test_a_done_word_of_more_than_one_line_is_refused(stage, word):
    """It stands alone on a line, so that no agent could ever say it."""
    stage.refused(2, "usage", "loop", "Fix it", "--review", "none", "--done", word)
    assert stage.ok("list", "-a", "--json").json == []


def test_every_fail_goes_back_and_an_old_pass_approves_nothing_new(stage):
    """In the first round ann passes it and bob does not; in the second it is the other way."""
    play(
        stage,
        reviewer='case "$CREW_AGENT-$(cat file-1)" in\n'
        '  bob-1|ann-2|bob-3) echo "$CREW_AGENT minds"; echo FAIL;;\n'
        '  ann-3) echo "ann minds too"; echo FAIL;;\n'
        "  *) echo PASS;;\nesac\n",
    )
    run = stage.ok("loop", "Fix it", "--review", "claudex", "--json").json
    assert run["round"] == 4
    assert "bob minds" in told(stage, "1.1-2-1")
    assert "ann minds" in told(stage, "1.1-3-1")
    last = told(stage, "1.1-4-1")
    assert "ann minds too" in last
    assert "bob minds" in last
    final = run["verdicts"][-1]["commit"]
    assert sorted(v["reviewer"] for v in run["verdicts"] if v["commit"] == final) == ["ann", "bob"]


BREAKS_OFF = """\
echo x >> "$SCENE/reviews-$CREW_AGENT"
if [ "$CREW_AGENT" = bob ] && [ ! -e "$SCENE/broke" ]; then touch "$SCENE/broke"; exit 1; fi
while [ ! -e "$SCENE/broke" ]; do sleep 0.05; done
sleep 0.3
echo PASS
"""


def test_a_reviewer_that_breaks_off_is_asked_again_and_the_other_ones_pass_stands(stage):
    play(stage, reviewer=BREAKS_OFF)
    run = stage.ok("loop", "Fix it", "--review", "claudex", "--json").json
    assert [(v["reviewer"], v["passed"]) for v in run["verdicts"]] == [("ann", True), ("bob", True)]
    asked = {name: (stage.folder / f"reviews-{name}").read_text() for name in ("ann", "bob")}
    assert asked == {"ann": "x\n", "bob": "x\nx\n"}


LIMITED = """\
echo x >> "$SCENE/reviews-bob"
n=$(wc -l < "$SCENE/reviews-bob")
if [ $n = 1 ]; then while [ ! -e "$SCENE/said-ann" ]; do sleep 0.05; done; sleep 0.5; fi
say() { printf '{"type":"result","subtype":"success","result":"%s",%s}\\n' "$1" "$2"; }
[ $n = 1 ] && { say "rate limited" '"is_error":true,"api_error_status":429'; exit 1; }
say PASS '"is_error":false,"terminal_reason":"completed"'
"""
"""As Claude Code would: at its limit as soon as ann has given her verdict, and PASS later."""

ANN_FAILS_ONCE = """\
echo x >> "$SCENE/reviews-$CREW_AGENT"
[ -e "$SCENE/said-$CREW_AGENT" ] && { echo PASS; exit; }
if [ "$CREW_AGENT" = ann ]; then
  echo "It deletes the backups."; echo FAIL; touch "$SCENE/said-ann"; exit
fi
while [ ! -e "$SCENE/said-ann" ]; do sleep 0.05; done
sleep 0.5; touch "$SCENE/said-bob"; BOB_ENDS
"""


def asked(stage):
    """How often each reviewer was asked."""
    files = {name: stage.folder / f"reviews-{name}" for name in ("ann", "bob")}
    return {name: len(file.read_text().splitlines()) for name, file in files.items()}


def limit_bob(stage):
    """Make bob a Claude Code that is at its limit once, and is tried again soon."""
    program = stage.folder / "claude"
    program.write_text(f"#!/bin/sh\ncat > /dev/null &\nSCENE='{stage.folder}'\n{LIMITED}")
    program.chmod(0o700)
    config = stage.root / ".crew" / "config.toml"
    limited = f'[agents.bob]\nadapter = "claude"\ncommand = "{program}"'
    text = config.read_text().replace('[agents.bob]\ninherit = "ann"', limited)
    config.write_text(text.replace("[run]\n", "[run]\nmax_backoff_s = 1\n"))


@pytest.mark.parametrize("bob_ends", ["exit 1", "kill -9 $$", "at its limit"])
def test_a_fail_goes_back_whatever_becomes_of_the_other_review(stage, bob_ends):
    play(stage, reviewer=ANN_FAILS_ONCE.replace("BOB_ENDS", bob_ends))
    if bob_ends == "at its limit":
        limit_bob(stage)
    run = stage.ok("loop", "Fix it", "--review", "claudex", "--json").json
    assert "It deletes the backups." in told(stage, "1.1-2-1")
    assert (run["state"], run["round"], asked(stage)) == ("complete", 2, {"ann": 2, "bob": 2})
    first, *last = (verdict["commit"] for verdict in run["verdicts"])
    assert first not in last


def test_a_fail_stands_after_a_crash_during_the_other_review(stage):
    play(stage, reviewer=ANN_FAILS_ONCE.replace("BOB_ENDS", "sleep 600"))
    loop = stage.start("loop", "Fix it", "--review", "claudex")
    until((stage.folder / "said-bob").exists)
    loop.kill()
    loop.communicate(timeout=PATIENCE_S)
    assert [passed for *_, passed in last_run(stage).verdicts] == [False]
    stage.ok("resume", "1.1")
    assert "It deletes the backups." in told(stage, "1.1-2-1")
    assert asked(stage) == {"ann": 2, "bob": 2}


@pytest.mark.parametrize("first", ["PASS", "FAIL"])
def test_a_quest_asks_no_reviewer_twice_because_another_one_broke_off(stage, first):
    """The worker of the workflow `claudex` reviews beside bob; ann is asked once for a commit."""
    reviewer = BREAKS_OFF.replace("\necho PASS", '\n[ -e "$SCENE/said" ] && echo PASS || VERDICT')
    until_it_broke = reviewer.replace("exit 1", "sleep 0.6; exit 1")
    verdict = f'{{ touch "$SCENE/said"; echo "It is slow."; echo {first}; }}'
    signal_it = "crew signal complete --summary finished >&2\n"
    play(stage, worker=WORK + signal_it, reviewer=until_it_broke.replace("VERDICT", verdict))
    stage.ok("quest", "new", "Fix it", "--workflow", "claudex")
    stage.ok("run", "--drain", "--agents", "1")
    rounds = 1 if first == "PASS" else 2
    run = last_run(stage)
    assert (run.state, asked(stage)["ann"], run.unjudged) == ("complete", rounds, ())
    assert asked(stage)["bob"] == 2
    if first == "FAIL":
        assert "It is slow." in told(stage, f"{run.id}-2-1")


def test_a_proof_that_fails_goes_back_until_it_succeeds(stage):
    proof = 'echo "proving"; test "$(cat file-1)" = 2'
    said = stage.ok("loop", "Fix it", "--proof", proof)
    assert "proving" in told(stage, "1.1-2-1")
    assert f"> `{proof}` exited with 1" in told(stage, "1.1-2-1")
    assert stage.git("show", "main:file-1") == "2"
    assert manifest(stage)["proof_command"]
    assert said.out == ""


def test_the_word_that_ends_the_work_can_be_another(stage):
    play(stage, worker=f'{WORK}[ "$CREW_STEP" = 3 ] && echo FINISHED || echo DONE\n')
    run = stage.ok("loop", "Fix it", "--done", "FINISHED", "--json").json
    assert (run["steps"], run["round"]) == (3, 1)
    assert "FINISHED" in told(stage, "1.1-1-1")


def test_a_loop_whose_rounds_are_spent_ends_with_6_and_says_why(stage):
    play(stage, reviewer="echo FAIL")
    said = stage.crew("loop", "Fix it", "--review", "single", "--max-rounds", "2")
    assert said.code == 6
    run = last_run(stage)
    assert (run.state, run.round, run.ask) == ("failed", 2, "review")
    assert run.error in said.err
    assert manifest(stage)["state"] == "failed"


NEVER = f'{WORK}echo x >> "$SCENE/calls"\n'
SHORT = {"CREW_RUN_MAX_STEPS": "3"}


def test_a_loop_whose_agent_never_says_that_it_is_finished_fails_and_keeps_its_work(stage):
    """The step limit ends the round, and the last round ends the loop."""
    play(stage, worker=NEVER)
    said = stage.crew("loop", "Fix it", "--review", "none", "--max-rounds", "2", **SHORT)
    assert said.code == 6
    assert (stage.folder / "calls").read_text() == "x\n" * 6
    run = last_run(stage)
    assert (run.state, run.round) == ("failed", 2)
    assert run.error == "gave up after 2 rounds: the step limit of 3 was reached without DONE"
    assert run.error in said.err
    assert "crew resume 1" in said.err
    assert "never said that it is finished" in told(stage, "1.1-2-1")
    assert stage.git("log", "--format=%s", "main") == "first"
    assert stage.git("show", "crew-1:file-1") == "2"
    play(stage, worker=DONE)
    assert stage.ok("resume", "1").code == 0
    assert stage.git("show", "main:step-1").startswith("1.2 ")


def test_a_loop_is_called_twenty_times_in_its_only_round_and_is_not_merged(stage):
    play(stage, worker=NEVER)
    run = json.loads(stage.crew("loop", "Fix it", "--max-rounds", "1", "--json").out)
    assert (run["state"], run["steps"], run["status"]) == ("failed", 20, "error")
    assert run["out_of_steps"] is True
    assert stage.git("log", "--format=%s", "main") == "first"


@pytest.mark.parametrize(("verdict", "code"), [("PASS", 0), ("FAIL", 6)])
def test_a_reviewer_that_passes_unfinished_work_knows_that_it_is_unfinished(stage, verdict, code):
    """A PASS completes a loop too, but only of somebody who was told."""
    judge = 'cp "$CREW_PROMPT_FILE" "$SCENE/review"; echo why; echo '
    play(stage, worker=NEVER, reviewer=f"{judge}{verdict}")
    terms = ("--review", "single", "--max-rounds", "1")
    assert stage.crew("loop", "Fix it", *terms, **SHORT).code == code
    assert "reached its step limit without saying" in (stage.folder / "review").read_text()


def test_a_loop_that_says_it_in_a_later_round_is_merged(stage):
    play(stage, worker=f'{WORK}[ "$CREW_ROUND" = 1 ] || echo DONE\n')
    run = stage.ok("loop", "Fix it", "--review", "none", "--json", **SHORT).json
    assert (run["state"], run["round"], run["steps"]) == ("complete", 2, 4)
    assert run["out_of_steps"] is False


def test_a_task_at_its_step_limit_is_checked_and_merged_and_shown_as_such(stage):
    """For a task the limit ends the round, and the checks decide."""
    play(stage, worker=NEVER, reviewer='cp "$CREW_PROMPT_FILE" "$SCENE/review"; echo PASS')
    stage.ok("new", "--title", "Fix it")
    flags = {**SHORT, "CREW_REVIEW_MODE": "single"}
    stage.ok("run", "--drain", "--agents", "1", **flags)
    shown = stage.ok("show", "1", "--json").json
    assert (shown["status"], shown["run"]["out_of_steps"]) == ("merged", True)
    assert (
        "ended at the step limit; the agent never said it was finished" in stage.ok("show", "1").out
    )
    assert "reached its step limit without saying" in (stage.folder / "review").read_text()
    play(stage, worker=DONE)
    stage.ok("new", "--title", "Fix more")
    stage.ok("run", "--drain", "--agents", "1", **flags)
    assert "step limit" not in (stage.folder / "review").read_text()
    assert "step limit" not in stage.ok("show", "2").out


# Beside a runner


def test_a_loop_beside_a_runner_keeps_its_review_and_its_proof(stage, running):
    """The runner sees the task as soon as it exists, and takes it up at once."""
    running("--agents", "5")
    play(stage, reviewer='echo "$CREW_TASK_ID" >> "$SCENE/reviewed"; echo PASS')
    terms = ("--review", "single", "--proof", "exit 1", "--max-rounds", "1", "--json")
    loops = [stage.start("loop", f"Fix {number}", *terms) for number in range(5)]
    for loop in loops:
        out, err = loop.communicate(timeout=PATIENCE_S)
        assert loop.returncode == 6, err
        run = json.loads(out)
        assert (run["state"], run["max_rounds"]) == ("failed", 1)
        assert run["reason"] == "gave up after 1 round: the gate is red"
        assert (run["error"]["code"], run["reason"] in run["error"]["message"]) == (
            "check_failed",
            True,
        )
        assert f"`crew resume {run['task']}`" in run["error"]["hint"]
    assert stage.git("log", "--format=%s", "main") == "first"
    said = stage.ok("loop", "Fix it", "--review", "single", "--proof", "test -f file-6", "--json")
    assert [v["reviewer"] for v in said.json["verdicts"]] == ["bob"]
    assert stage.git("show", "main:file-6") == "1"
    assert (stage.folder / "reviewed").read_text() == "6\n"


def test_a_loop_that_was_killed_before_its_run_began_has_its_terms(stage):
    """Any runner may take its task up, at any time later."""
    crashed = stage.crew(
        *("loop", "Fix it", "--review", "none", "--proof", "exit 1", "--max-rounds", "1"),
        CREW_CRASH_AT="runner.wake.before",
    )
    assert crashed.code == -9
    assert stage.crew("run", "--drain", "--agents", "1").code == 6
    (run,) = stage.ok("runs", "1", "--json").json
    assert (run["error"], run["max_rounds"]) == ("gave up after 1 round: the gate is red", 1)
    assert stage.ok("show", "1", "--json").json["terms"]["proof"] == "exit 1"
    shown = stage.ok("show", "1").out
    assert "proof: exit 1" in shown
    assert f"\nrun 1.1: failed, {run['kind']}, round 1 of 1, 1 step, cost unknown\n" in shown


HOLD = 'touch "$SCENE/up-$CREW_TASK_ID"; while [ ! -e "$SCENE/go" ]; do sleep 0.05; done\n'


def test_ctrl_c_beside_a_runner_ends_the_following_only(stage, running):
    play(stage, worker=HOLD + DONE)
    running("--agents", "1")
    process = stage.start("loop", "Fix it")
    until((stage.folder / "up-1").exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "the runner continues task 1; `crew resume 1` follows it again" in err
    following = stage.start("resume", "1.1")
    stage.let_go()
    assert following.wait(timeout=PATIENCE_S) == 0
    (run,) = stage.ok("runs", "1", "--json").json
    assert (run["state"], run["steps"]) == ("complete", 1)
    following.communicate()


def test_a_loop_whose_runner_dies_goes_on_by_itself(stage, running):
    play(stage, worker=HOLD + DONE)
    runner = running("--agents", "1")
    process = stage.start("loop", "Fix it", "--proof", "test -f file-1")
    until((stage.folder / "up-1").exists)
    runner.kill()
    until(lambda: stage.runner_pid() == process.pid)
    stage.let_go()
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "the runner has ended; task 1 continues in this process" in err
    assert stage.git("show", "main:file-1") == "1"


def test_two_loops_at_once_work_at_the_same_time(stage):
    """Without a runner the first one is it; each waits until the other is at work too."""
    both = '[ -e "$SCENE/up-1" ] && [ -e "$SCENE/up-2" ]'
    meet = f'touch "$SCENE/up-$CREW_TASK_ID"; until {both}; do sleep 0.05; done\n'
    play(stage, worker=meet + DONE)
    first = stage.start("loop", "Fix one")
    until((stage.folder / "up-1").exists)
    second = stage.start("loop", "Fix two")
    for process in (first, second):
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, err
    assert stage.git("ls-tree", "--name-only", "main", "file-1", "file-2") == "file-1\nfile-2"


# Interrupted


def test_after_ctrl_c_resume_goes_on_in_the_same_session(stage):
    play(
        stage, worker='touch "$SCENE/up"; while [ ! -e "$SCENE/go" ]; do sleep 0.05; done\n' + DONE
    )
    process = stage.start("loop", "Fix it")
    until((stage.folder / "up").exists)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "`crew resume 1` continues" in err
    assert manifest(stage)["state"] == "working"
    stage.let_go()
    stage.ok("resume", "1.1")
    first, second = (stage.folder / "sessions").read_text().splitlines()
    assert (first.split()[1], second.split()[1]) == ("new", "1")
    assert first.split()[0] == second.split()[0]
    (run,) = stage.ok("runs", "1", "--json").json
    assert (run["state"], run["steps"]) == ("complete", 1)


def test_a_run_that_failed_is_resumed_as_a_new_try_in_its_session(stage):
    play(stage, reviewer='echo "no tests"; echo FAIL')
    assert stage.crew("loop", "Fix it", "--review", "single", "--max-rounds", "1").code == 6
    again = stage.crew("resume", "1.1", "--json")
    assert (again.code, again.json["id"], again.json["max_rounds"]) == (6, "1.2", 1)
    assert again.json["reason"] == "gave up after 1 round: the review failed"
    assert set(again.json["error"]) == {"code", "message", "hint"}
    assert "no tests" in told(stage, "1.2-1-1")
    play(stage, reviewer="echo PASS")
    stage.ok("resume", "1")
    sessions = (stage.folder / "sessions").read_text().split()
    assert len({*sessions[::2]}) == 1
    runs = stage.ok("runs", "1", "--json").json
    assert [r["state"] for r in runs] == ["failed", "failed", "complete"]


def test_a_run_that_is_complete_and_not_merged_is_resumed_at_its_merge(stage):
    killed = stage.crew("loop", "Fix it", CREW_CRASH_AT="git.commit_merge.before")
    assert killed.code == -9
    assert stage.ok("show", "1", "--json").json["status"] == "done"
    said = stage.ok("resume", "crew-1.1")
    assert said.err.splitlines()[-1] == "task 1 is merged"
    (run,) = stage.ok("runs", "1", "--json").json
    assert (run["state"], run["round"], run["steps"]) == ("complete", 1, 1)
    assert stage.git("show", "main:file-1") == "1"
    assert stage.ok("resume", "1").err.splitlines()[-1] == "task 1 is merged"


def test_a_run_whose_agent_is_stuck_ends_with_its_error_and_resume_tries_again(stage):
    stage.configure("[log]\nlevel = 'info'\n")
    play(stage, worker='echo "the key is wrong" >&2; exit 3\n')
    said = stage.crew("loop", "Fix it", "--max-rounds", "3")
    *_, why, hint = said.err.splitlines()
    assert said.code == 6
    assert why.startswith("crew: task 1 is not finished: agent A is stuck: ")
    assert "3" in why
    assert "`crew resume 1` tries again" in hint
    assert "is stuck" in stage.crew("resume", "1").err.splitlines()[-2]
    play(stage, worker=DONE)
    run = stage.ok("resume", "1", "--json").json
    assert (run["id"], run["state"], run["max_rounds"]) == ("1.1", "complete", 3)


def test_a_task_that_was_stopped_or_killed_is_resumed_with_its_terms(stage, running):
    play(stage, worker=HOLD + DONE)
    runner = running("--agents", "1")
    process = stage.start("loop", "Fix it", "--proof", "test -f file-1")
    until((stage.folder / "up-1").exists)
    stage.ok("stop", "1")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "stopped with agent A" in err) == (6, True)
    runner.terminate()
    runner.communicate(timeout=PATIENCE_S)
    stage.let_go()
    stage.ok("resume", "1")
    assert manifest(stage, "1.2")["proof_command"] == "test -f file-1"


@pytest.mark.parametrize(("args", "code"), [(["resume", "9"], 3), (["resume", "1.1"], 3)])
def test_what_never_ran_cannot_be_resumed(stage, args, code):
    assert stage.crew(*args).code == code


# Questions


def test_a_question_ends_the_loop_with_6_and_its_answer_lets_it_go_on(stage):
    play(stage, worker=f'if [ "$CREW_STEP" = 1 ]; then {ASK}else\n{DONE}fi\n')
    said = stage.crew("loop", "Fix it")
    assert said.code == 6
    assert "it asks: Which one?" in said.err
    assert 'crew answer q1 "…"' in said.err
    (question,) = stage.ok("inbox", "--json").json
    assert list(question)[: len(INBOX_FIELDS)] == INBOX_FIELDS
    assert (question["id"], question["task"], question["run"]) == ("q1", "1", "1.1")
    assert (question["question"], question["context"]) == ("Which one?", "two are there")
    assert (question["kind"], question["role"]) == ("input", "worker")
    assert [a["status"] for a in stage.ok("ps", "--json").json] == ["idle"]
    stage.ok("answer", "q1", "the first")
    assert stage.ok("inbox", "--json").json == []
    stage.ok("resume", "1")
    assert "The answer:\n> the first" in told(stage, "1.1-1-2")
    sessions = (stage.folder / "sessions").read_text().split()
    assert sessions[0] == sessions[2]


def test_with_a_runner_up_a_question_frees_the_slot_for_the_next_task(stage, running):
    ask_once = f'if [ "$CREW_TASK_ID" = 1 ] && [ "$CREW_STEP" = 1 ]; then {ASK}else\n{DONE}fi\n'
    play(stage, worker=ask_once)
    stage.ok("new", "--title", "one")
    stage.ok("new", "--title", "two")
    runner = running("--agents", "1")
    until(lambda: stage.status("2") == "merged")
    assert stage.status("1") == "in_progress"
    _check_that_people_see_it(stage)
    said = stage.crew("answer", "q1", "the first", "--json")
    assert (said.code, said.json["status"], said.json["answer"]) == (0, "answered", "the first")
    until(lambda: stage.status("1") == "merged")
    assert stage.crew("answer", "q1", "the second").code == 5
    seen = stage.ok("ps").err + stage.ok("list", "-a").out + stage.crew().err
    assert "asks q1" not in seen
    assert "crew inbox" not in seen
    runner.terminate()
    _, err = runner.communicate(timeout=PATIENCE_S)
    assert f"Z {ASKED}\n" in err


ASKED = 'task 1 asks q1: Which one? (crew answer q1 "…")'


def _check_that_people_see_it(stage):
    """A question that waits stands wherever people look."""
    assert ASKED in stage.ok("ps").err
    assert ASKED in stage.ok("dashboard", "--once").out
    assert [one["id"] for one in stage.ok("dashboard", "--json").json["questions"]] == ["q1"]
    listed = stage.ok("list")
    assert "one (asks q1: Which one?)" in listed.out
    assert "1 question waits: crew inbox" in listed.err
    assert [one["questions"] for one in stage.ok("list", "-a", "--json").json] == [["q1"], []]
    assert 'asks q1: Which one? (crew answer q1 "…")' in stage.ok("show", "1").out
    (shown,) = stage.ok("show", "1", "--json").json["questions"]
    assert (shown["id"], shown["answer_with"]) == ("q1", 'crew answer q1 "…"')
    assert stage.crew().err.endswith("\n1 question waits: crew inbox\n")


@pytest.mark.parametrize(("question", "code"), [("q9", 3), ("", 3)])
def test_a_question_that_nobody_asked_cannot_be_answered(stage, question, code):
    assert stage.crew("answer", question, "x").code == code


def test_a_question_is_gone_once_its_task_is_closed(stage):
    play(stage, worker=ASK)
    assert stage.crew("loop", "Fix it").code == 6
    stage.ok("close", "1")
    assert stage.ok("inbox", "--json").json == []
    assert stage.crew("answer", "q1", "x").code == 5


def test_an_empty_inbox_is_an_empty_list(stage):
    assert stage.ok("inbox", "--json").json == []
    assert stage.ok("inbox").out == ""


# Signals


def test_complete_ends_the_work_without_the_word(stage):
    play(stage, worker=f"{WORK}crew signal complete --summary fixed >&2\n")
    run = stage.ok("loop", "Fix it", "--json").json
    assert (run["state"], run["steps"]) == ("complete", 1)


def test_partly_complete_goes_on_in_a_new_session_that_is_told_where(stage):
    partly = 'crew signal partially-complete --progress half --continue-at "the printer" >&2'
    play(stage, worker=f'if [ "$CREW_STEP" = 1 ]; then {partly}; else\n{DONE}fi\n')
    stage.ok("loop", "Fix it\n\nAll of it.")
    first, second = (stage.folder / "sessions").read_text().splitlines()
    assert first.split()[0] != second.split()[0]
    assert "Continue at: the printer" in told(stage, "1.1-1-2")
    assert "All of it." in told(stage, "1.1-1-2")


def test_a_signal_is_refused_without_a_token_with_a_wrong_one_and_with_a_late_one(stage):
    play(stage, worker=f'echo "$CREW_TOKEN" > "$SCENE/token"\n{DONE}')
    stage.ok("loop", "Fix it")
    token = (stage.folder / "token").read_text().strip()
    signal_it = ("signal", "complete", "--summary", "s")
    assert stage.crew(*signal_it).code == 4
    for wrong in ("x", "a/b/c", "1.1/1/", token[:-1], f"2{token}", "1.1/x/y", "\udcff"):
        assert stage.crew(*signal_it, CREW_TOKEN=wrong).code == 4, wrong
    stage.refused(5, "step_over", *signal_it, CREW_TOKEN=token)


def test_the_second_signal_and_one_that_lacks_something_are_refused_to_the_agents_face(stage):
    play(
        stage,
        worker=f'{WORK}crew signal complete 2> "$SCENE/lacks" || echo $? >> "$SCENE/codes"\n'
        "crew signal complete --summary s >&2\n"
        f'{ASK.strip()} 2> "$SCENE/late" || echo $? >> "$SCENE/codes"\n',
    )
    stage.ok("loop", "Fix it")
    assert (stage.folder / "codes").read_text() == "2\n5\n"
    assert "needs summary" in (stage.folder / "lacks").read_text()
    assert stage.ok("inbox", "--json").json == []


# Killed


@pytest.mark.parametrize(
    ("told_crew", "ends"),
    [("crew signal complete --summary s", "merged"), (ASK.strip(" >&2\n"), "in_progress")],
)
def test_a_recorded_signal_is_acted_on_although_the_runner_was_killed_before_the_step_ended(
    stage, told_crew, ends
):
    waits = 'touch "$SCENE/said"; while :; do sleep 0.05; done\n'
    play(stage, worker=f'echo x >> "$SCENE/calls"\n{WORK}{told_crew} >&2\n{waits}')
    process = stage.start("loop", "Fix it")
    until((stage.folder / "said").exists)
    until(lambda: is_manifest("working", stage))  # it follows, a moment later
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert manifest(stage)["state"] == "working"
    said = stage.crew("resume", "1")
    assert said.code == (0 if ends == "merged" else 6), said
    assert stage.status("1") == ends
    assert (stage.folder / "calls").read_text() == "x\n"


def test_a_message_is_given_with_the_next_step_and_only_once(stage):
    hold = 'touch "$SCENE/up"; while [ ! -e "$SCENE/go" ]; do sleep 0.05; done'
    play(stage, worker=f"case $CREW_STEP in 1) {hold};; 2) ;; *) {DONE};; esac\n")
    process = stage.start("loop", "Fix it")
    try:
        until((stage.folder / "up").exists)
        stage.ok("send", "1", "mind the tests")
        stage.let_go()
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        stage.let_go()
        process.communicate(timeout=PATIENCE_S)
    given = ["mind the tests" in told(stage, f"1.1-1-{step}") for step in (1, 2, 3)]
    assert given == [False, True, False]


def test_a_message_to_a_task_under_review_reaches_its_reviewer_before_it_is_approved(stage):
    """The reviewer cannot be spoken to in the middle: it is asked once more, with the message."""
    play(
        stage,
        reviewer='n=$(ls "$SCENE" | grep -c ^review- || true)\n'
        'cp "$CREW_PROMPT_FILE" "$SCENE/review-$n"\n'
        f'[ "$n" != 0 ] || {{ {HOLD}}}\n'
        'if grep -q "> Is it tested?" "$CREW_PROMPT_FILE"; then echo "no test"; echo FAIL\n'
        "else echo PASS; fi\n",
    )
    process = stage.start("loop", "Fix it", "--review", "single", "--json")
    until((stage.folder / "up-1").exists)
    said = stage.ok("send", "1", "Is it tested?")
    assert "task 1 is under review: its reviewers get message m1" in said.err
    stage.let_go()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    run = json.loads(out)
    assert [verdict["passed"] for verdict in run["verdicts"]] == [True, False, True]
    given = [
        "Is it tested?" in (stage.folder / f"review-{number}").read_text() for number in range(3)
    ]
    assert given == [False, True, False]
    assert "no test" in told(stage, "1.1-2-1")
    assert "Is it tested?" not in told(stage, "1.1-2-1")
    events = map(json.loads, stage.ok("events", "--subject", "message:m1", "--json").lines)
    assert [event["to"] for one in events for event in one] == ["queued", "given", "read"]


def test_a_message_to_a_finished_task_is_refused(stage):
    stage.ok("loop", "Fix it")
    assert stage.crew("send", "1", "hello").code == 5


def test_the_manifest_is_never_half_written(stage):
    """Read as fast as it goes while it is written again and again."""
    play(stage, worker=f'[ "$CREW_STEP" = 4 ] && {{ {DONE}}} || true\n')
    process = stage.start("loop", "Fix it")
    file, states = stage.root / ".crew" / "runs" / "1.1" / "manifest.json", []
    is_over = False
    while not is_over:
        is_over = process.poll() is not None  # before the look, so that the last one sees the end
        if file.exists():
            states.append(json.loads(file.read_text())["state"])
    process.communicate()
    assert process.returncode == 0
    assert states[-1] == "completed"
    assert manifest(stage)["history"] == ["submitted", "working", "reviewing", "completed"]
    assert manifest(stage)["session_id"]


# Why a gate is red


def test_a_gate_that_runs_out_of_time_names_its_limit_and_the_key(stage):
    """To the agent in its prompt, to the person in the reason and in `show`."""
    stage.configure('[complete]\ncommand = "echo begun; sleep 600"\ntimeout = "1s"\n')
    run = stage.crew("loop", "Fix it", "--review", "none", "--max-rounds", "2", "--json").json
    why = (
        "`echo begun; sleep 600` ran out of time: it was ended after 1s, "
        "its limit ([complete] timeout)"
    )
    assert f"> begun\n>\n> {why}\n" in told(stage, "1.1-2-1")
    assert run["reason"] == f"gave up after 2 rounds: the gate is red: {why}"
    shown = stage.ok("show", "1").out
    assert "gate failed on " in shown
    assert f"> begun\n> {why}\n" in shown
    gate = stage.ok("show", "1", "--json").json["last_gate"]
    assert (gate["passed"], gate["command"]) == (False, "echo begun; sleep 600")
    assert gate["output"] == f"begun\n\n{why}"
    assert gate["commit"] == stage.git("rev-parse", "crew-1")


def test_a_gate_that_needs_the_network_where_there_is_none_names_the_network(stage):
    gate = stage.folder / "gate.py"
    gate.write_text('import socket\nsocket.getaddrinfo("pypi.org", 443)\n')
    stage.configure(f'[complete]\ncommand = "python3 {gate}"\n[sandbox]\nnetwork = false\n')
    run = stage.crew("loop", "Fix it", "--review", "none", "--max-rounds", "2", "--json").json
    why = "its output reads as if it needs the network, which the sandbox keeps from it"
    key = "([sandbox] network, which a person can set)"
    assert f"; {why} {key}\n" in told(stage, "1.1-2-1")
    assert run["reason"].endswith(f"; {why} {key}")
    assert f"{why} {key}" in stage.ok("show", "1").out


def test_show_has_the_end_of_the_last_gate_s_output_and_nothing_that_a_terminal_obeys(stage):
    gate = stage.folder / "gate"
    gate.write_text("seq -f 'line %g' 3000; printf 'e\\033]0;x\\007nd\\n'")
    stage.configure(f'[complete]\ncommand = "sh {gate}"\n')
    stage.ok("loop", "Fix it", "--review", "none")
    lines = stage.ok("show", "1").lines
    begin = next(n for n, line in enumerate(lines) if line.startswith("gate passed on "))
    assert lines[begin + 1] == "the last 20 lines (`crew logs 1 --raw` has all of it):"
    assert lines[begin + 2 : begin + 22] == [f"> line {n}" for n in range(2982, 3001)] + ["> end"]
    gate = stage.ok("show", "1", "--json").json["last_gate"]
    assert (gate["passed"], len(gate["output"]) <= 8_000) == (True, True)
    assert gate["output"].endswith("line 3000\nend\n")
