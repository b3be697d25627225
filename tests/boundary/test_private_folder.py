"""`.crew` belongs to its user alone, whatever the umask, and no link in it leads crew out of it."""

import os
import stat
import subprocess

import pytest

from front.conftest import CREW

OPEN_UMASK = "umask 000; exec"


def open_ones(scene):
    """Everything below `.crew` that others may open, besides what git checks out."""
    folder = scene.root / ".crew"
    found = [
        folder,
        *(path for path in folder.rglob("*") if path.relative_to(folder).parts[0] != "tasks"),
    ]
    return [path for path in found if not path.is_socket() and path.lstat().st_mode & 0o077]


def with_open_umask(scene, *args):
    argv = ["sh", "-c", f'{OPEN_UMASK} "$0" "$@"', str(CREW), *args]
    return subprocess.run(
        argv, cwd=scene.root, capture_output=True, text=True, timeout=120, check=False
    )


def test_nothing_in_crew_s_folder_is_open_to_others_whatever_the_umask(bare_scene):
    assert with_open_umask(bare_scene, "init").returncode == 0
    agent = bare_scene.folder / "agent.sh"
    agent.write_text('echo hi > "made-$CREW_TASK_ID"; git add -A; git commit -qm made; echo DONE')
    for key, value in (
        ("agents.sh.command_template", f"sh {agent}"),
        ("agents.worker_default", "sh"),
    ):
        assert with_open_umask(bare_scene, "config", "set", key, value).returncode == 0
    assert with_open_umask(bare_scene, "new", "--title", "one").returncode == 0
    assert with_open_umask(bare_scene, "run", "--drain").returncode == 0
    logs = bare_scene.root / ".crew/logs"
    assert (logs / "task-1.log").exists()
    assert (logs / "crew.log").exists()
    assert (bare_scene.root / ".crew/runs/1.1/manifest.json").exists()
    assert open_ones(bare_scene) == []


@pytest.mark.parametrize("how", ["run --drain", "doctor --repair"])
def test_the_folder_of_an_older_crew_is_closed(scene, how):
    scene.ok("new", "--title", "one")
    folder = scene.root / ".crew"
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert any(one["check"] == "privacy" for one in wrong(scene))
    scene.ok(*how.split())
    assert open_ones(scene) == []
    assert wrong(scene) == []


def wrong(scene):
    return [one for one in scene.crew("doctor", "--json").json if one["state"] == "wrong"]


def test_a_file_that_a_person_writes_there_is_no_problem(scene):
    (scene.root / ".crew/config.toml").chmod(0o644)
    assert wrong(scene) == []


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_log_that_became_a_link_is_replaced_and_not_appended_through(scene, link):
    logs = [scene.root / ".crew/logs" / name for name in ("task-1.log", "crew.log")]
    victim = scene.root.parent / "victim"
    victim.write_text("mine\n")
    for log in logs:
        link(victim, log)
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    assert victim.read_text() == "mine\n"
    assert victim.stat().st_nlink == 1
    assert all(stat.S_ISREG(log.lstat().st_mode) for log in logs)
    assert "working on 1" in logs[0].read_text()


def test_a_log_that_became_a_pipe_holds_up_nothing(scene):
    os.mkfifo(scene.root / ".crew/logs/task-1.log")
    scene.ok("new", "--title", "one")
    assert scene.ok("logs", "1").out == ""
    scene.ok("run", "--drain")
    assert "working on 1" in scene.ok("peek", "1").out


def test_a_database_that_became_a_link_is_refused(scene):
    database = scene.root / ".crew/crew.db"
    away = scene.root.parent / "away.db"
    database.rename(away)
    database.symlink_to(away)
    said = scene.crew("ps")
    assert said.code == 1
    assert "is a link" in said.err


def link_to_victim(wake):
    target = wake.parent.parent.parent / "victim"
    target.write_text("mine\n")
    wake.symlink_to(target)


@pytest.mark.parametrize("becomes", [lambda wake: None, link_to_victim])
def test_a_start_makes_the_wake_pipe_again(scene, becomes):
    wake = scene.root / ".crew/wake"
    wake.unlink()
    becomes(wake)
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    assert stat.S_ISFIFO(wake.lstat().st_mode)
    victim = scene.root.parent / "victim"
    assert not victim.exists() or victim.read_text() == "mine\n"


def test_a_secret_that_another_process_chose_proves_nothing(scene):
    chosen = scene.root.parent / "chosen"
    chosen.write_bytes(b"known to all")
    secret = scene.root / ".crew/secret"
    secret.unlink(missing_ok=True)
    secret.symlink_to(chosen)
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    assert not secret.is_symlink()
    assert secret.read_bytes() != b"known to all"
