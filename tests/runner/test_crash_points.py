"""Killed before and after every single effect and started again, the crew ends where it would have.

`make test` meets every effect once, many deaths in one history; a seed decides on which side of the
effect: the same ones on every day, and the others with `CREW_SEED=1`. `make faults` tries both
sides of every effect, each death alone in a repository of its own.
"""

import contextlib
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from crew.domain.requests import Request
from crew.git.checkpoints.checkpoints import checkpoints, take_checkpoint
from crew.runner.requests.ask_crew import ask
from crew.store.database import open_database
from crew.store.request_queue import open_requests
from crew.store.row_repair import differences
from crew.store.runner_lock import find_runner
from crew.tasks.task_source import NewTask
from runner.scene import PATIENCE_S, DriverScene, check_the_end, until
from runner.stories import STORIES, check_manifests, done, work
from warm import Forked

WHEN = ("before", "after")
SEED = int(os.environ.get("CREW_SEED", "0"))
CHAIN = 6
"""Deaths in one history: enough to be quick, few enough that a failure says where."""

ERRANDS = {
    "git.restore_files": "restore",
    "git.place_restored": "restore",
    "git.drop_checkpoints": "drop",
    "agents.detach": "detach",
    "store.rebuild": "rebuild",
    "tasks.delete_file": "remove",
}
ELSEWHERE = {
    "runner/test_terminals.py": (
        *("agents.put_session_file", "agents.make_session_log", "agents.start_tmux_server"),
        *("agents.open_session", "agents.signal", "agents.type", "agents.paste"),
        "agents.kill_session",
    ),
    "runner/test_furnishing.py": (
        *("furnish.mark", "furnish.make_folder", "furnish.place_copy", "furnish.place_link"),
        *("furnish.note", "furnish.note_made", "git.write_excludes", "git.include_excludes"),
    ),
    "agents/test_first_run.py": ("agents.first_run", "agents.first_run_folder"),
    "agents/test_own_home.py": (
        *("agents.own_home", "agents.own_settings", "agents.remove_former_tools"),
    ),
    "git/test_landed_refs.py": ("git.restore_landed",),
    "git/test_git_crashes.py": (
        *("git.drop_spare", "git.copy_history", "git.make_nested", "git.worktree_add"),
        *("git.set_aside_repository", "git.set_aside_stranger", "git.write_staged"),
        *("git.rewrite_worktree", "git.drop_special", "git.show_branch"),
        *("git.pack_commits", "git.store_commits", "git.bring_index"),
    ),
    "git/test_lfs.py": ("git.fill_lfs", "git.note_lfs", "git.take_in_lfs"),
    "git/test_promised_objects.py": ("git.fetch_promised",),
    "git/test_submodules.py": ("git.write_submodule",),
    "front/test_rewritten_branches.py": ("git.commit_superseding", "git.commit_again"),
    "git/test_persons_commits.py": ("git.write_persons_files",),
    "git/test_special_files.py": ("git.drop_special_file",),
    "git/test_refused_files.py": ("git.open_closed",),
    "runner/test_notices.py": ("notices.post",),
    "runner/test_signed_merges.py": ("git.sign_merge",),
    "system/test_private_files.py": ("files.set_aside",),
    "store/test_salvage.py": ("store.keep_damaged", "store.replace"),
    "system/test_bounded_log.py": ("agents.shorten_log",),
    "tasks/test_batches.py": ("tasks.write_files",),
    "config/test_editing.py": ("config.make_folder", "config.write"),
    "boundary/test_config_trust.py": ("config.approve",),
    "front/test_upkeep.py": ("runner.delete_state",),
    "front/test_cli_place.py": (
        *("git.name_worktree", "git.link_repository", "git.move_journal"),
        "runner.drop_originals",
    ),
    "front/test_cli_lost_folder.py": ("store.save_again",),
    "store/test_store_crashes.py": ("store.keep_place",),
    "front/test_cli_manager.py": ("runner.ask_door", "runner.answer_door"),
    "front/test_cli_lifecycle.py": ("runner.run_diff",),
}
"""What has a test of its own in which it is killed before and after."""
ASKED = ("store.ask", "runner.wake")
ANSWERED = ("store.withdraw",)


LIST_EFFECTS = """
import importlib, pkgutil, crew
from crew.system.crash_points import EFFECTS
for module in pkgutil.walk_packages(crew.__path__, "crew."):
    if not module.name.startswith("crew.front") and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(*EFFECTS)
"""
"""The front ends have tests of their own for what they do themselves."""


def test_every_effect_below_the_front_ends_is_killed_here():
    listed = subprocess.run(
        [sys.executable, "-c", LIST_EFFECTS], capture_output=True, text=True, check=True
    )
    told = {name for story in STORIES.values() for name in story.names}
    elsewhere = {name for names in ELSEWHERE.values() for name in names}
    assert told | {*ERRANDS, *ASKED, *ANSWERED, *elsewhere} == set(listed.stdout.split())


def test_what_is_killed_elsewhere_is_killed_there():
    for file, names in ELSEWHERE.items():
        text = (Path(__file__).parents[1] / file).read_text()
        assert [name for name in names if name.partition(".")[2] not in text] == []


def _chains(seed: int) -> list[object]:
    """Each story's effects in order, cut into histories; half of them die before, half after."""
    params = []
    for title, story in STORIES.items():
        count = -(-len(story.names) // CHAIN)
        for number in range(count):
            names = story.names[number::count]
            points = [f"{name}.{WHEN[(seed + i) % 2]}" for i, name in enumerate(names)]
            params.append(pytest.param(story, points, id=f"{title}-{number}"))
    return params


def test_two_seeds_meet_both_sides_of_every_effect():
    met = [point for seed in (0, 1) for param in _chains(seed) for point in param.values[1]]
    names = [name for story in STORIES.values() for name in story.names]
    assert sorted(met) == sorted(f"{name}.{when}" for name in names for when in WHEN)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("story", "points"), _chains(SEED))
def test_a_crew_that_dies_again_and_again_ends_as_if_it_had_not(make_scene, story, points):
    scene, base = story.begin(make_scene)
    for point in points:
        running = scene.start(CREW_CRASH_AT=point)
        if running.wait() == -9:
            check_manifests(scene)
            continue
        assert running.returncode == 0, f"{point}\n{scene.said()}"
        story.end(scene, base)  # it had passed that point for good: take a fresh repository
        scene, base = story.begin(make_scene)
        scene.run(code=-9, CREW_CRASH_AT=point)
    story.end(scene, base)


OFTEN = ("store.record", "git.advance", "agents.spawn", "git.sync_place", "tasks.put_in_place")
"""Effects whose later times differ from their first."""


def _alone() -> list[object]:
    points = [
        (title, story, f"{name}.{when}:1")
        for title, story in STORIES.items()
        for name in story.names
        for when in WHEN
    ]
    points += [
        ("road", STORIES["road"], f"{name}.{when}:{count}")
        for name in OFTEN
        for when in WHEN
        for count in (2, 3)
    ]
    points += [
        (title, STORIES[title], f"store.record.{when}:{count}")
        for title in ("road", "spoken")
        for when in WHEN
        for count in range(4, 40, 3)
    ]
    return [pytest.param(story, point, id=f"{title}-{point}") for title, story, point in points]


@pytest.mark.faults
@pytest.mark.parametrize(("story", "point"), _alone())
def test_a_crew_that_dies_at_one_point_ends_as_if_it_had_not(make_scene, story, point):
    scene, base = story.begin(make_scene)
    ended = scene.start(CREW_CRASH_AT=point).wait(timeout=PATIENCE_S)
    check_manifests(scene)
    may_be_out_of_reach = not point.endswith(":1")
    assert ended == -9 or (may_be_out_of_reach and ended == 0), scene.said()
    story.end(scene, base)


@pytest.fixture
def kept(make_scene) -> DriverScene:
    """A scene with an agent, two tasks and a checkpoint of the first."""
    scene = make_scene()
    workplace = scene.make()
    for title in ("one", "two"):
        workplace.source.add(NewTask(title=title), at=1.0)
    ask(workplace, Request(verb="spawn", args={"kind": "scripted", "count": 2, "chosen": True}))
    scene.write({"draft.txt": "draft\n"})
    take_checkpoint(workplace.repo, scene.path, "1", label="kept", at=1.0)
    (scene.path / "draft.txt").unlink()
    workplace.db.close()
    return scene


def _restored(scene: DriverScene) -> None:
    assert (scene.path.parent / "back" / "draft.txt").read_text() == "draft\n"
    assert [p.name for p in scene.path.parent.iterdir() if "crew-restore" in p.name] == []


def _is_up(scene: DriverScene) -> bool:
    return find_runner(scene.path / ".crew" / "lock") is not None


def _detached(scene: DriverScene) -> None:
    log = scene.path.parent / "detached.log"
    until(lambda: log.exists() and "up" in log.read_text(), what="the detached program")


CHECKS = {
    "detach": _detached,
    "restore": _restored,
    "drop": lambda scene: checkpoints(scene.workplace.repo, "1") == [] or pytest.fail("kept"),
    "rebuild": lambda scene: len(scene.world.agents) == 2 or pytest.fail("agents are lost"),
    "remove": lambda scene: (
        len(scene.workplace.source.scan(None).items) == 1 or pytest.fail("it is still there")
    ),
}


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", sorted(ERRANDS))
def test_an_errand_that_was_killed_can_be_done_again(kept, name, when):
    deed = ERRANDS[name]
    place = kept.path.parent
    arguments = {
        "restore": ["1", str(place / "back")],
        "remove": ["2"],
        "detach": [str(place / "detached.log")],
    }
    kept.options["do"] = [deed, *arguments.get(deed, [])]
    kept.run(code=-9, CREW_CRASH_AT=f"{name}.{when}")
    if (deed, when) == ("remove", "after"):
        kept.options["do"] = ["rebuild"]
    kept.run()
    CHECKS[deed](kept)
    workplace = kept.workplace
    assert differences(workplace.db) == []
    workplace.db.close()


@pytest.fixture
def busy(make_scene) -> DriverScene:
    """A scene whose one task takes a moment."""
    script = {"default": {"steps": [[{"sleep_s": 1.0}], done(*work("a.txt"))]}}
    return make_scene(script, tasks=["slow"], agents=1)


def _asking(scene: DriverScene, **env: str) -> int:
    """Ask for an agent called Zed in a process of its own; how that ended."""
    return _ask(scene, **env).wait(timeout=PATIENCE_S)


def _ask(scene: DriverScene, *, is_patient: bool = False, **env: str) -> Forked:
    """If it is patient, it waits for a runner that is stopped, as for one that is only busy."""
    errand = ["ask", "spawn", {"kind": "scripted", "name": "Zed", "chosen": True}]
    options = {"do": errand, "is_patient": is_patient}
    return replace(scene, tasks=[], options=options).start(**env)


@pytest.mark.parametrize("when", WHEN)
@pytest.mark.parametrize("name", ASKED)
def test_a_request_whose_asker_was_killed_is_done_once_or_not_at_all(busy, name, when):
    base = busy.git("rev-parse", "HEAD")
    running = busy.start()
    until(lambda: _is_up(busy), what="a runner")
    assert _asking(busy, CREW_CRASH_AT=f"{name}.{when}") == -9
    assert _asking(busy) in {0, 5}  # 5: there is a Zed already
    assert running.wait(timeout=PATIENCE_S) == 0, busy.said()
    assert "Zed" in busy.world.agents
    check_the_end(busy, base=base, merged=1)


@pytest.mark.parametrize("when", WHEN)
def test_a_request_survives_the_runner_that_was_asked(busy, when):
    """The runner falls silent and dies; whoever asked is killed while taking the request back."""
    base = busy.git("rev-parse", "HEAD")
    running = busy.start()
    until(lambda: _is_up(busy), what="a runner")
    until(lambda: _is_silenced(running, busy), what="a moment in which it writes nothing")
    asking = _ask(busy, is_patient=True, CREW_CRASH_AT=f"store.withdraw.{when}")
    until(lambda: _has_request(busy), what="a request")
    running.kill()
    assert running.wait(timeout=PATIENCE_S) == -9
    assert asking.wait(timeout=PATIENCE_S) == -9
    assert _asking(busy) == 0
    busy.run()
    assert "Zed" in busy.world.agents
    check_the_end(busy, base=base, merged=1)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _is_silenced(running: Forked, scene: DriverScene) -> bool:
    """Stop the runner, unless that would leave the database or the tasks locked."""
    running.send_signal(signal.SIGSTOP)
    until(lambda: _is_stopped(running.pid), what="a runner that stopped")
    if _is_unlocked(scene.path / ".crew"):
        return True
    running.send_signal(signal.SIGCONT)
    return False


def _is_unlocked(folder: Path) -> bool:
    with (
        contextlib.closing(sqlite3.connect(folder / "crew.db", timeout=0)) as db,
        (folder / "tasks" / "default" / ".lock").open("a") as tasks,
    ):
        try:
            fcntl.flock(tasks, fcntl.LOCK_EX | fcntl.LOCK_NB)
            db.execute("BEGIN IMMEDIATE")
        except (OSError, sqlite3.OperationalError):
            return False
    return True


def _has_request(scene: DriverScene) -> bool:
    with contextlib.closing(open_database(scene.path / ".crew" / "crew.db")) as db:
        return bool(open_requests(db))
