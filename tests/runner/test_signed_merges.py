"""`[merge] sign`: crew's own merges carry the person's signature, or wait for the key."""

import subprocess
from pathlib import Path

import pytest

from git.keys import ssh_key
from runner.scene import PATIENCE_S, check_the_end, until
from runner.stories import done, work

SIGN = "[merge]\nsign = true\n"
WAIT = {"run": "until test -e PLACE/go; do sleep 0.02; done"}


def key_of(scene, **more) -> Path:
    """The person's settings of this repository sign with a new key."""
    settings = ssh_key(scene.path.parent / "keys", **more)
    for key, value in {**settings, "commit.gpgsign": "true"}.items():
        scene.git("config", key, value)
    return Path(settings["user.signingkey"])


def merges_since(scene, base) -> list[str]:
    """Every merge of the target's history, whoever made it."""
    return scene.git("rev-list", "--first-parent", "--merges", f"{base}..main").split()


def check_signed(scene, base, *, count):
    merges = merges_since(scene, base)
    assert len(merges) == count
    for merge in merges:
        scene.git("verify-commit", merge)
    assert scene.git("log", "-1", "--format=%cn <%ce>", merges[0]) == "Ann <ann@example.org>"
    agents = scene.git("rev-list", "--no-merges", f"{base}..main").split()
    assert [scene.git("log", "-1", "--format=%G?", one) for one in agents] == ["N"] * len(agents)


def several(make_scene, count=4, **options):
    tasks = [f"task {number}" for number in range(count)]
    steps = {title: {"steps": [done(*work(f"{title}.txt"))]} for title in tasks}
    return make_scene({"tasks": steps}, tasks=tasks, config=SIGN, agents=2, **options)


def test_whatever_lands_is_signed_and_agents_commit_without_the_key(make_scene):
    scene = several(make_scene)
    base = scene.git("rev-parse", "HEAD")
    key_of(scene)
    scene.run()
    check_the_end(scene, base=base, merged=4)
    check_signed(scene, base, count=4)


def test_without_the_setting_nothing_is_signed_whatever_the_person_signs(make_scene):
    scene = make_scene({"default": {"steps": [done(*work("a.txt"))]}}, tasks=["one"])
    base = scene.git("rev-parse", "HEAD")
    key_of(scene)
    scene.run()
    check_the_end(scene, base=base, merged=1)
    assert scene.git("log", "--format=%G?", f"{base}..main").split() == ["N", "N"]


@pytest.mark.parametrize(
    "point",
    [
        *("git.sign_merge.before", "git.sign_merge.after"),
        *("git.advance.before:2", "git.advance.after:2"),  # the first one makes the ref
    ],
)
def test_a_crew_that_dies_around_a_signature_lands_one_signed_merge(make_scene, point):
    scene = several(make_scene, count=1)
    base = scene.git("rev-parse", "HEAD")
    key_of(scene)
    scene.run(code=-9, CREW_CRASH_AT=point)
    landed = scene.git("rev-parse", "refs/crew/landed/main")
    assert (landed != base) == (point == "git.advance.after:2")
    scene.run()
    check_the_end(scene, base=base, merged=1)
    check_signed(scene, base, count=1)
    assert landed in (base, merges_since(scene, base)[0])


def test_a_locked_key_makes_the_landing_wait_and_nothing_else(make_scene):
    scene = several(make_scene, count=2)
    base = scene.git("rev-parse", "HEAD")
    key = key_of(scene, passphrase="secret")
    scene.run()  # it ends by itself: nothing hangs
    assert {task.state for task in scene.world.tasks.values()} == {"done"}
    queue = scene.world.queues["main"]
    assert "the key that [merge] sign uses does not sign" in queue.waiting
    assert "passphrase" in queue.waiting
    assert "ssh-add" in queue.remedy
    assert scene.git("rev-parse", "main") == base
    open_key(key)
    scene.run()
    assert scene.world.queues["main"].waiting == ""
    check_the_end(scene, base=base, merged=2)
    check_signed(scene, base, count=2)


def test_a_runner_tries_a_locked_key_again(make_scene):
    scene = make_scene(
        {"default": {"steps": [done(*work("a.txt"))]}},
        tasks=["one"],
        config=SIGN,
        patience_s=PATIENCE_S,
    )
    base = scene.git("rev-parse", "HEAD")
    key = key_of(scene, passphrase="secret")
    running = scene.start()
    until(lambda: waits(scene), what="a landing that waits")
    open_key(key)
    assert running.wait(timeout=PATIENCE_S) == 0, scene.said()
    check_the_end(scene, base=base, merged=1)
    check_signed(scene, base, count=1)


def waits(scene) -> bool:
    database = scene.path / ".crew" / "crew.db"
    if not database.exists():
        return False
    queue = scene.world.queues.get("main")
    return queue is not None and "does not sign" in queue.waiting


def open_key(key: Path) -> None:
    change = ["ssh-keygen", "-q", "-p", "-P", "secret", "-N", "", "-f", str(key)]
    subprocess.run(change, check=True, capture_output=True)


def test_commits_of_a_person_in_between_are_merged_and_signed_too(make_scene):
    """The base of the queue is then a merge of crew itself."""
    scene = make_scene(
        {
            "tasks": {
                "one": {"steps": [done(*work("a.txt"))]},
                "two": {"steps": [[WAIT], done(*work("b.txt"))]},
            }
        },
        tasks=["one", "two"],
        config=SIGN,
        agents=2,
    )
    base = scene.git("rev-parse", "HEAD")
    key_of(scene)
    scene.git("config", "commit.gpgsign", "false")
    scene.write({"a.txt": "in the way\n"})
    running = scene.start()
    until(
        lambda: (
            scene.git("for-each-ref", "refs/crew/landed/main")
            and scene.git("rev-parse", "refs/crew/landed/main") != base
        ),
        what="a landing",
    )
    scene.commit({"mine.txt": "mine\n"})
    (scene.path / "a.txt").unlink()
    (scene.path.parent.parent / "go").touch()
    assert running.wait(timeout=PATIENCE_S) == 0, scene.said()
    scene.run()
    assert {task.state for task in scene.world.tasks.values()} == {"merged"}
    merges = scene.git("rev-list", "--merges", f"{base}..main").split()
    assert len(merges) == 3
    for merge in merges:
        scene.git("verify-commit", merge)


def test_a_slow_key_holds_up_no_agent(make_scene):
    """The key signs only once another agent has begun a further step."""
    signing = {"run": "until test -e PLACE/signing; do sleep 0.02; done"}
    scene = make_scene(
        {
            "tasks": {
                "one": {"steps": [done(*work("a.txt"))]},
                "two": {"steps": [[signing], done(*work("b.txt"), {"run": "touch PLACE/go"})]},
            }
        },
        tasks=["one", "two"],
        config=SIGN,
        agents=2,
        programs={
            "slow-keygen": (
                '#!/bin/sh\nplace=$(dirname "$0")\ntouch "$place/signing"\n'
                'until test -e "$place/go"; do sleep 0.02; done\nexec ssh-keygen "$@"\n'
            )
        },
    )
    base = scene.git("rev-parse", "HEAD")
    key_of(scene)
    scene.git("config", "gpg.ssh.program", str(scene.path.parent.parent / "slow-keygen"))
    scene.run()
    check_the_end(scene, base=base, merged=2)
    check_signed(scene, base, count=2)
