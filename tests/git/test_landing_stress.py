"""A person commits, stages and edits in the checkout while a hundred tasks land in it."""

import random
import subprocess
import sys
import threading
import time

from crew.domain.kernel.names import landed_ref
from crew.git.delivery.delivery import deliver
from crew.git.delivery.landed_refs import integration_tip
from crew.git.git_command import git
from crew.git.merges.merges import Merged, advance, contains, merge
from crew.git.repository import commit_of
from git.people import Person

TASKS = 100
DELIVERIES = 12
EDITS = 40
LIMIT_S = 200.0

PERSON = """
import random, subprocess, sys, time
from pathlib import Path

root, seed = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(seed)
number = 0

def git(*args):
    # Whoever is told that index.lock exists tries again.
    while True:
        done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True)
        if done.returncode == 0:
            return
        if "index.lock" in done.stderr or "cannot lock ref" in done.stderr:
            time.sleep(0.05)
            continue
        if "nothing to commit" in done.stdout or "no changes added" in done.stdout:
            return
        sys.exit(done.stderr + done.stdout)

def edit():
    global number
    number += 1
    own = ["mine.txt", "other.txt"]
    name = chance.choice([*own, *own, f"shared{chance.randrange(4)}.txt"])
    with (root / name).open("a") as file:
        file.write(f"person {number}\\n")
    print(f"person {number}", flush=True)
    return name

def commit_all():
    edit()
    git("commit", "-qam", f"person {number}")

def add_and_commit():
    git("add", edit())
    git("commit", "-qm", f"person {number}")

def stage():
    git("add", edit())

while not (root.parent / "stop").exists():
    chance.choice([commit_all, add_and_commit, stage, edit])()
    time.sleep(chance.uniform(0.05, 0.4))
"""


def start_person(person, seed):
    """A process that is no child of this one: crew takes the git commands of its own for its own.

    The shell ends at once; what the person says on stderr is why it gave up.
    """
    return subprocess.Popen(
        ["sh", "-c", '"$@" &', "sh", sys.executable, "-c", PERSON, str(person.path), str(seed)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def task_commit(repo, base, number):
    """What an agent made: a file of its own, and a line at the top of one that is shared."""
    shared = f"shared{number % 4}.txt"
    old = git(repo.common_dir, "cat-file", "blob", f"{base}:{shared}")
    tree = git(repo.common_dir, "ls-tree", base)
    for name, content in ((f"task{number}.txt", "x\n"), (shared, f"task {number}\n{old}\n")):
        blob = git(repo.common_dir, "hash-object", "-w", "--stdin", stdin=content.encode())
        lines = [line for line in tree.splitlines() if not line.endswith(f"\t{name}")]
        tree = "\n".join([*lines, f"100644 blob {blob}\t{name}"])
    made = git(repo.common_dir, "mktree", stdin=tree.encode() + b"\n")
    return git(repo.common_dir, "commit-tree", "-p", base, made, stdin=f"task {number}".encode())


def land(repo, number):
    tip = integration_tip(repo, "main")
    merged = merge(repo, onto=tip, head=task_commit(repo, tip, number), message="m", at=number)
    assert isinstance(merged, Merged)
    advance(repo, landed_ref("main"), to=merged.commit, expected=tip)


def take_in_the_persons_commits(repo):
    tip, main = integration_tip(repo, "main"), commit_of(repo, "main")
    if not contains(repo, ancestor=main, descendant=tip):
        merged = merge(repo, onto=tip, head=main, message="take main in", at=1)
        assert isinstance(merged, Merged), merged
        advance(repo, landed_ref("main"), to=merged.commit, expected=tip)


def catch_up(repo):
    take_in_the_persons_commits(repo)
    return deliver(repo, "main").state


def test_nothing_landed_and_nothing_of_the_person_is_lost(repo, person):
    text = "".join(f"line {number}\n" for number in range(20))
    names = ["mine.txt", "other.txt", *(f"shared{number}.txt" for number in range(4))]
    person.commit(dict.fromkeys(names, text))
    integration_tip(repo, "main")
    worker = start_person(person, seed=random.randrange(1000))
    said, states, deadline = [], [], time.monotonic() + LIMIT_S
    listener = threading.Thread(target=lambda: said.extend(worker.stdout))
    listener.start()
    try:
        for number in range(TASKS):
            land(repo, number)
            if number % 5 == 4:
                states.append(catch_up(repo))
        while states.count("delivered") < DELIVERIES or len(said) < EDITS:
            assert time.monotonic() < deadline, states
            land(repo, TASKS + len(states))
            states.append(catch_up(repo))
    finally:
        (person.path.parent / "stop").touch()
        listener.join()
        problem = worker.stderr.read()
        worker.wait()
        worker.stdout.close()
        worker.stderr.close()
    assert problem == ""
    while deliver(repo, "main", hold_s=0.01).state != "current":
        person.git("commit", "-qam", "the rest", check=False)
        take_in_the_persons_commits(repo)
        assert time.monotonic() < deadline
    everything = "\n".join(content.decode() for content in Person(person.path).tree().values())
    lines = everything.split("\n")
    lost = [line for line in (s.strip() for s in said) if line not in lines]
    lost += [f"task {n}" for n in range(TASKS) if f"task {n}" not in lines]
    lost += [f"task{n}.txt" for n in range(TASKS) if not (person.path / f"task{n}.txt").exists()]
    assert lost == [], states
    assert list(person.path.glob("*.before-crew-*")) == []
