"""Whole roads with real git and a scripted agent: what a task meets from its first step to main.

One crew carries all these tasks through; each test looks at one of them.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crew.domain.kernel.fact import Fact
from crew.store.fact_log import facts_after
from runner.conftest import scenes_in
from runner.scene import DriverScene, check_the_end
from runner.stories import done, work

TELL = 'cat "$CREW_PROMPT_FILE" > PLACE/prompt-'
"""With a name after it: the agent shows what it was told."""
SESSION = 'echo "$CREW_SESSION" >> PLACE/sessions-'


def _wait_for(*names: str) -> str:
    return "; ".join(f"until test -e PLACE/{name}; do sleep 0.02; done" for name in names)


def _on_shared(name: str, *others: str) -> list:
    """Work on one file from the same base as the others."""
    meet = {"run": f"touch PLACE/{name}; {_wait_for(*others)}"}
    return done(meet, *work("shared.txt", f"{name}\n"))


def _resolve(name: str) -> list:
    return done({"run": f"touch PLACE/conflict; {TELL}{name}"}, {"resolve": "both"})


_LANDED = (
    'until git -C "$CREW_REPO" cat-file -e refs/crew/landed/main:idle.txt; do sleep 0.05; done'
)
_SOMEBODY_ELSE_CONFLICTS = _wait_for("conflict")


SCRIPT = {
    "tasks": {
        "careful": {
            "steps": [
                [{"say": "I am not DONE yet"}],
                [{"say": "DONE."}],
                [{"say": "first\nDONE, nearly"}],
                done(*work("careful.txt")),
            ]
        },
        "talkative": {"steps": [work("talkative.txt"), *([[{"say": "hm"}]] * 9)]},
        "red": {
            "steps": [done(*work("red.txt", "BROKEN\n"))],
            "on_red_gate": [done({"run": TELL + "red"}, *work("red.txt", "fine\n"))],
        },
        "uncommitted": {
            "steps": [done({"write": {"path": "draft.txt", "text": "draft\n"}})],
            "on_uncommitted": [done({"run": TELL + "uncommitted"}, {"commit": "the draft"})],
        },
        "idle": {
            "steps": [done()],
            "on_nothing_committed": [done(*work("idle.txt"))],
        },
        "in use": {
            "steps": [
                [{"run": SESSION + "in-use"}, {"fail": {"kind": "session_in_use"}}],
                done({"run": SESSION + "in-use"}, *work("in-use.txt")),
            ],
        },
        "slow": {
            "steps": [
                [
                    {"run": SESSION + "slow"},
                    *work("slow.txt"),
                    {"write": {"path": "slow-draft.txt", "text": "draft\n"}},
                    {"fail": {"kind": "timeout"}},
                ],
            ],
            "on_resumed": [
                done({"run": SESSION + "slow"}, {"run": TELL + "slow"}, {"commit": "rest"})
            ],
        },
        "one": {
            "steps": [_on_shared("one", "two", "dropper")],
            "on_conflict": [_resolve("one")] * 5,
        },
        "two": {
            "steps": [_on_shared("two", "one", "dropper")],
            "on_conflict": [_resolve("two")] * 5,
        },
        "dropper": {
            "steps": [
                _on_shared("dropper", "one", "two")[:-1],
                done({"run": f"{_LANDED} && {_SOMEBODY_ELSE_CONFLICTS}"}),
            ],
            "on_conflict": [done({"run": 'git merge -q -s ours "$CREW_MERGE_COMMIT"'})] * 5,
            "on_lost_side": [
                done(
                    {"run": TELL + "dropper"},
                    {"run": 'git checkout -q "$CREW_MERGE_COMMIT" -- .'},
                    {"append": {"path": "shared.txt", "text": "dropper\n"}},
                    {"commit": "both sides"},
                )
            ]
            * 5,
        },
    }
}
NAMES = tuple(SCRIPT["tasks"])
GATE = "if grep -rs BROKEN --exclude-dir=.git .; then echo the gate says no; exit 1; fi"


@pytest.fixture(scope="module")
def day(tmp_path_factory) -> Iterator[DriverScene]:
    """The whole crew's day, told once."""
    with scenes_in(tmp_path_factory.mktemp("day")) as make:
        config = f'[run]\nmax_steps = 4\nbackoff_s = 0.01\n[complete]\ncommand = "{GATE}"\n'
        config += '[sandbox]\nallow_read = [".git"]\n'  # an agent waits for what landed
        scene = make(SCRIPT, tasks=NAMES, config=config, agents=len(NAMES))
        base = scene.git("rev-parse", "HEAD")
        scene.run()
        check_the_end(scene, base=base, merged=len(NAMES))
        yield scene


def _task(name: str) -> str:
    return str(NAMES.index(name) + 1)


def _proof(scene: DriverScene, name: str) -> str:
    return Path(scene.path.parent.parent / name).read_text()


def _facts(scene: DriverScene, trigger: str, subject: str) -> list[Fact]:
    db = scene.workplace.db
    found = [fact for _, fact in facts_after(db, subject=subject) if fact.trigger == trigger]
    db.close()
    return found


def _sent_back(scene: DriverScene, name: str) -> list[str]:
    return [f.changes["ask"] for f in _facts(scene, "sent_back", f"run:{_task(name)}.1")]


def test_only_a_line_with_nothing_but_done_ends_the_work(day):
    assert day.world.runs[_task("careful") + ".1"].steps == 4
    assert _facts(day, "step_limit", f"run:{_task('careful')}.1") == []


def test_at_the_step_limit_the_work_is_checked_as_if_done(day):
    (limit,) = _facts(day, "step_limit", f"run:{_task('talkative')}.1")
    assert (limit.target, day.world.runs[_task("talkative") + ".1"].steps) == ("reviewing", 4)


def test_a_red_gate_goes_back_with_its_command_and_its_output(day):
    assert _sent_back(day, "red") == ["red_gate"]
    assert "the gate says no" in _proof(day, "prompt-red")
    assert f"> `{GATE}` exited with 1" in _proof(day, "prompt-red")
    assert (day.path / "red.txt").read_text() == "fine\n"


def test_uncommitted_work_goes_back_by_name_and_is_not_dropped(day):
    assert _sent_back(day, "uncommitted") == ["uncommitted"]
    assert "draft.txt" in _proof(day, "prompt-uncommitted")
    assert (day.path / "draft.txt").read_text() == "draft\n"


def test_done_without_a_commit_is_not_believed(day):
    assert _sent_back(day, "idle") == ["nothing_committed"]
    assert (day.path / "idle.txt").exists()


def test_a_session_in_use_is_answered_with_a_new_session_at_once(day):
    first, second = _proof(day, "sessions-in-use").split()
    assert first != second
    assert _facts(day, "error", "agent:" + _agent(day, "in use")) == []


def _agent(scene: DriverScene, name: str) -> str:
    (born,) = _facts(scene, "created", f"run:{_task(name)}.1")
    return str(born.changes["agent"])


def test_a_timeout_gets_one_fresh_session_that_is_told_what_is_there(day):
    first, second = _proof(day, "sessions-slow").split()
    assert first != second
    told = _proof(day, "prompt-slow")
    assert "add slow.txt" in told
    assert "slow-draft.txt" in told
    assert (day.path / "slow-draft.txt").read_text() == "draft\n"


def test_a_conflict_is_resolved_by_its_agent_with_both_sides_in_the_result(day):
    assert sorted((day.path / "shared.txt").read_text().split()) == ["dropper", "one", "two"]
    sent = [ask for name in ("one", "two", "dropper") for ask in _sent_back(day, name)]
    assert sent.count("conflict") >= 2
    told = [_proof(day, f"prompt-{n}") for n in ("one", "two") if "conflict" in _sent_back(day, n)]
    assert all("shared.txt" in text for text in told)


def test_a_merge_that_drops_what_landed_goes_back_even_if_its_gate_is_green(day):
    sent = _sent_back(day, "dropper")
    assert "lost_side" in sent
    assert sent.count("lost_side") == sent.count("conflict")
    told = _proof(day, "prompt-dropper").splitlines()
    assert {"> idle.txt", "> shared.txt"} <= set(told)
    assert (day.path / "idle.txt").exists()


def test_what_a_task_cost_stands_in_its_merge(day):
    body = day.git("log", "--first-parent", "--grep=Task: 1$", "--format=%b", "main")
    assert "Run: 1.1 (scripted)" in body
    assert "Steps: 4" in body


def test_the_agent_finds_its_own_crew_on_its_path(day):
    assert (day.path / ".crew" / "logs" / "bin" / "crew").exists()


def test_a_ticket_is_closed_only_after_the_merge(make_scene):
    look = "grep -h ^status: PLACE/0/repo/.tickets/*.md >> PLACE/statuses"
    scene = make_scene(
        {"default": {"steps": [done(*work("a.txt"))]}},
        tasks=["one"],
        config=f'[tasks]\nsource = "tk"\n[complete]\ncommand = "{look}"\n'
        '[sandbox]\nallow_read = [".tickets"]\n',
    )
    scene.run()
    seen = _proof(scene, "statuses").splitlines()
    assert len(seen) == 2  # the check of the run, and of what would become the tip
    assert set(seen) == {"status: in_progress"}
    (ticket,) = (scene.path / ".tickets").glob("*.md")
    assert "status: closed" in ticket.read_text()


def test_whoever_never_commits_fails_and_keeps_every_byte(make_scene):
    scene = make_scene({"default": {"steps": [done({"write": {"path": "d", "text": "draft"}})]}})
    scene.tasks.append({"title": "never"})
    assert scene.run()["tasks"] == {"1": "error"}
    assert "work was left uncommitted" in scene.world.runs["1.1"].error
    assert (scene.worktrees / "1" / "d").read_text() == "draft"
    assert scene.kept("1")["d"] == "draft"
    assert scene.world.agents["A"].state == "idle"


def test_five_failures_make_an_agent_stuck_and_retry_frees_it(make_scene):
    fails = [[{"fail": {"message": "no luck"}}]] * 5
    scene = make_scene({"default": {"steps": [*fails, done(*work("a.txt"))]}}, agents=1)
    scene.tasks.append({"title": "unlucky"})
    base = scene.git("rev-parse", "HEAD")
    assert scene.run()["tasks"] == {"1": "in_progress"}
    assert scene.world.agents["A"].state == "stuck"
    errors = [*_facts(scene, "error", "agent:A"), *_facts(scene, "errors", "agent:A")]
    waits = [round(fact.changes["retry_at"] - fact.at, 3) for fact in errors]
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.16]
    scene.options["first"] = [["retry", {"subject": "1"}]]
    scene.run()
    check_the_end(scene, base=base, merged=1)
