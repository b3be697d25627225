"""A terminal and kill -9: wherever a process dies, the next crew command ends it correctly."""

import json
import os
import subprocess

import pytest

from crew.agents.terminal.tmux import Tmux, live_sessions
from crew.domain.rows.terminal import Terminal
from crew.domain.runs.verdicts import Verdict
from crew.runner.manager import TERMINAL, open_manager
from crew.runner.outside.review_runs import Reviews, keep_verdict
from crew.runner.terminals.dead_terminals import ended_unnoticed
from crew.system.processes.ownership import find_process, owned_processes
from crew.tasks.task_source import NewTask
from crew.workplace import find_workplace
from runner.scene import PATIENCE_S, DriverScene, until

WHEN = ("before", "after")
START = ["ask", "start", {"task": "1", "default_kind": "typed"}]
STOP = ["ask", "stop_task", {"task": "1"}]
LOOK = ["ask", "look", {}]

AGENT = 'echo run >> PLACE/runs; while read -r line; do eval "$line"; done'

OPENING = (
    "store.record",
    "git.claim_branch",
    "agents.put_session_file",
    "agents.make_session_log",
    "agents.start_tmux_server",
    "agents.open_session",
)
CLOSING = ("store.record", "agents.signal", "git.commit_checkpoint", "tasks.put_in_place")
TYPING = ("agents.type", "agents.paste")


@pytest.fixture
def make_desk(make_scene):
    """Makes scenes with one task and an agent that does what is typed."""
    made: list[DriverScene] = []

    def make(env: str = "{}") -> DriverScene:
        config = (
            f'[agents.typed]\ncommand = "true"\nenv = {env}\n'
            f"interactive_template = {json.dumps(AGENT)}\n"
        )
        made.append(make_scene(tasks=["one"], config=config, agents=0))
        return made[-1]

    yield make
    for scene in made:
        command = ["tmux", "-S", "tmux.sock", "kill-server"]
        if (scene.path / ".crew").exists():
            subprocess.run(command, cwd=scene.path / ".crew", capture_output=True, check=False)


def do(scene: DriverScene, deed, *, code: int = 0, **env: str):
    scene.options["do"] = deed
    return scene.run(code=code, **env)


def sessions(scene: DriverScene) -> list[str]:
    return list(live_sessions(Tmux(folder=scene.path / ".crew")))


def in_panes(scene: DriverScene) -> tuple:
    workplace = find_workplace(scene.path)
    try:
        return owned_processes(f"pane/{workplace.repo_id}")
    finally:
        workplace.db.close()


def is_open(scene: DriverScene) -> bool:
    terminal = scene.world.terminals["1.1"]
    return terminal.has_process and find_process(terminal.pid) is not None


def check_open(scene: DriverScene) -> None:
    assert is_open(scene)
    assert sessions(scene) == ["crew-1"]
    runs = scene.path.parent.parent / "runs"
    until(lambda: runs.exists() and runs.read_text(), what="the agent's first word")
    assert runs.read_text() == "run\n"


def check_stopped(scene: DriverScene) -> None:
    world = scene.world
    assert (world.tasks["1"].state, world.runs["1.1"].state) == ("error", "failed")
    assert world.terminals["1.1"].state == "closed"
    assert (sessions(scene), in_panes(scene)) == ([], ())
    assert scene.kept("1")["draft.txt"] == "draft"
    assert scene.workplace.source.show("1").status == "error"


def draft(scene: DriverScene) -> None:
    (scene.worktrees / "1" / "draft.txt").write_text("draft\n")


def die_at(scene: DriverScene, deed, point: str) -> bool:
    """Whether it died there; if not, it was past that point for good."""
    scene.options["do"] = deed
    ended = scene.start(CREW_CRASH_AT=point).wait(timeout=PATIENCE_S)
    assert ended in {-9, 0}, scene.said()
    return ended == -9


def test_a_session_that_is_there_keeps_its_script(make_desk):
    """A shell that has not read its script yet would run the one that was written over it."""
    scene = make_desk()
    do(scene, LOOK)
    scripts = []
    for instructions in ("look around", "look again"):
        workplace = find_workplace(scene.path)
        open_manager(workplace, "typed", instructions=instructions, model="")
        workplace.db.close()
        scripts.append([path.read_text() for path in (scene.path / ".crew/scripts").iterdir()])
    assert sessions(scene) == [TERMINAL]
    assert scripts[0] == scripts[1]


def opening_again(scene):
    """What finishes an opening that was broken off: any command, once it was heard of at all."""
    task = scene.world.tasks.get("1")
    return LOOK if task is not None and task.run else START


def closing_again(scene):
    terminal = scene.world.terminals["1.1"]
    return STOP if terminal.is_up and not terminal.leaving else LOOK


@pytest.mark.parametrize("when", WHEN)
def test_a_session_whose_openers_and_closers_die_again_and_again_opens_once_and_closes(
    make_desk, when
):
    scene = make_desk()
    died = 0
    for name in OPENING:
        died += die_at(scene, opening_again(scene) if died else START, f"{name}.{when}")
    assert died == len(OPENING)
    do(scene, LOOK)
    check_open(scene)
    draft(scene)
    died = 0
    for name in CLOSING:
        died += die_at(scene, closing_again(scene), f"{name}.{when}")
    assert died >= 2
    do(scene, LOOK)
    check_stopped(scene)


ALONE = [
    *((name, f"{name}.{when}") for name in OPENING for when in WHEN),
    *(("store.record", f"store.record.{when}:{n}") for n in (2, 3, 4) for when in WHEN),
]


@pytest.mark.faults
@pytest.mark.parametrize(("name", "point"), ALONE)
def test_an_opener_that_dies_at_one_point_leaves_work_for_the_next_command(make_desk, name, point):
    scene = make_desk()
    died = die_at(scene, START, point)
    assert died or ":" in point
    do(scene, opening_again(scene))
    check_open(scene)


@pytest.mark.faults
@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", CLOSING)
def test_a_closer_that_dies_at_one_point_leaves_work_for_the_next_command(make_desk, name, when):
    scene = make_desk()
    do(scene, START)
    draft(scene)
    assert die_at(scene, STOP, f"{name}.{when}")
    do(scene, closing_again(scene))
    check_stopped(scene)


@pytest.mark.parametrize("when", WHEN)
def test_a_session_that_is_killed_while_it_says_that_it_ended_has_ended(make_desk, when):
    scene = make_desk('{ CREW_CRASH_AT = "agents.kill_session.' + when + '" }')
    do(scene, START)
    check_open(scene)
    draft(scene)
    do(scene, ["send", "crew-1", "exit 3"])
    until(lambda: scene.world.terminals["1.1"].leaving, what="a word about its end")
    until(lambda: not is_open(scene), what="the end of its process")
    do(scene, LOOK)
    check_stopped(scene)
    assert scene.world.runs["1.1"].error == "the session ended: exit code 3"


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", TYPING)
def test_whoever_dies_while_typing_can_type_again(make_desk, name, when):
    scene = make_desk()
    do(scene, START)
    text = "echo x >> typed\n" * (30 if name == "agents.paste" else 1)
    words = text if name == "agents.paste" else text.strip()
    assert die_at(scene, ["send", "crew-1", words], f"{name}.{when}")
    do(scene, ["send", "crew-1", "echo; echo y > again"])
    until((scene.worktrees / "1" / "again").exists, what="what was typed at last")


def test_where_processes_cannot_be_seen_the_number_alone_must_do(monkeypatch):
    """As on macOS; a session there is not taken for one that ended."""
    nobody = 2**22  # no number of a process is as large
    terminals = [
        Terminal(id="1.1", task="1", state="open", pid=os.getpid(), started=5),
        Terminal(id="2.1", task="2", state="open", pid=nobody, started=5),
        Terminal(id="3.1", task="3"),
    ]
    assert ended_unnoticed(terminals) == terminals[:2]
    monkeypatch.setattr("crew.runner.terminals.dead_terminals.find_process", lambda _pid: None)
    assert ended_unnoticed(terminals) == terminals[1:2]


# Reviews


@pytest.fixture
def workplace(make_scene):
    scene = make_scene()
    made = scene.make()
    made.source.add(NewTask(title="one"), at=1.0)
    yield made
    made.db.close()


def test_a_verdict_that_is_kept_twice_is_counted_once(workplace):
    found = Verdict(commit="c" * 40, reviewer="bob", passed=True, notes="fine")
    for name in ("1-5-6-a", "1-5-6-a", "1-5-6-b"):
        keep_verdict(workplace, "1", found, name=name)
    item = workplace.source.show("1")
    assert (item.review_count, len(item.comments)) == (2, 2)
    assert item.comments[0].text == "Review of cccccccccccc: passed\n\nfine"


def test_a_count_that_was_lost_is_made_up_for(workplace):
    found = Verdict(commit="c" * 40, reviewer="bob", passed=False)
    keep_verdict(workplace, "1", found, name="1-5-6-a")
    file = workplace.folder / "tasks" / "default" / "1.meta.json"
    meta = json.loads(file.read_text())
    file.write_text(json.dumps({**meta, "review_count": 0}))
    keep_verdict(workplace, "1", found, name="1-5-6-b")
    assert workplace.source.show("1").review_count == 2


def test_only_reviews_whose_crew_is_gone_are_swept(workplace):
    reviews = Reviews(workplace)
    me = find_process(1) or pytest.skip("there is no /proc")
    mine = workplace.worktrees / f".review-1-1-{me.started}-aaaaaaaa"
    gone = workplace.worktrees / f".review-1-1-{me.started + 1}-bbbbbbbb"
    unseen = workplace.worktrees / ".review-1-1-0-cccccccc"
    for path in (mine, gone, unseen):
        path.parent.mkdir(exist_ok=True)
        subprocess.run(
            ["git", "worktree", "add", "-q", "--detach", str(path)],
            cwd=workplace.root,
            check=True,
        )
    reviews.tidy()
    assert [path.exists() for path in (mine, gone, unseen)] == [True, False, True]
