"""A quest of eight items that conflict, built by agents that know no more than their prompts say.

`pytest tests/e2e/test_prompt_only.py -s` prints how many sessions each role took.
"""

import random
import sys
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from crew.store.fact_log import facts_after, load_world
from crew.workplace import find_workplace
from e2e import prompt_reader
from front.conftest import lay_crew

NAMES = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
SHARED = ("menu.txt", "index.txt")
GATE = r"""
grep -rn --include '*.txt' -e '^<<<<<<<' -e '^>>>>>>>' . && exit 1
grep -rnE --include '*.txt' ' $' . |
    sed -E 's/^([^:]+:[0-9]+):.*/\1: a blank at the end/' | grep . && exit 1
exit 0
"""
CONFIG = """\
[run]
agents = {slots}
backoff_s = 0.05
[agents]
worker_default = "reader"
[agents.reader]
command_template = "{python} -I -S {program}"
prompt_via = "stdin"
[complete]
command = "sh {gate}"
"""


@dataclass(frozen=True)
class Request:
    """The items: each has its own file, and a line at the end of one or two shared files."""

    slots: int
    sentences: dict[str, list[tuple[str, str]]]
    after: dict[str, str]

    @property
    def text(self) -> str:
        lines = ["Build a catalogue with these items", ""]
        for name, added in self.sentences.items():
            first = f" after {self.after[name]}" if name in self.after else ""
            told = " ".join(f"Append the line `{words}` to {file}." for file, words in added)
            lines.append(f"Item {name}{first}: {told}")
        return "\n".join(lines)

    @property
    def files(self) -> dict[str, list[str]]:
        """The lines that each file must have at the end, in any order."""
        found: dict[str, list[str]] = {}
        for added in self.sentences.values():
            for file, words in added:
                found.setdefault(file, []).append(words.rstrip())
        return {file: sorted(lines) for file, lines in found.items()}


def request_of(seed: int) -> Request:
    """Who shares which file, who waits for whom, who is sloppy: all by the seed."""
    chance = random.Random(seed)
    names = list(NAMES)
    chance.shuffle(names)
    sentences = {}
    for number, name in enumerate(names):
        shared = SHARED if number % 3 == 0 else (chance.choice(SHARED),)
        sentences[name] = [(f"{name}.txt", name), *((file, f"{name} is here") for file in shared)]
    dirty, long = chance.sample(names, 2)
    sentences[dirty][0] = (f"{dirty}.txt", f"{dirty} ")  # which the gate does not like
    while len(sentences[long]) < prompt_reader.ATTENTION:
        sentences[long].insert(1, (f"{long}-more.txt", long))
    sentences[long].append((f"{long}-last.txt", long))  # which its builder does not read
    after = {names[-1]: names[0]} if chance.random() < 0.7 else {}
    return Request(slots=chance.choice([3, 4]), sentences=sentences, after=after)


@pytest.fixture
def begun(bare_scene, request):
    """The quest of this seed, begun in a crew whose only agent is the reader."""
    wanted = request_of(request.param)
    program, gate = bare_scene.folder / "reader.py", bare_scene.folder / "gate.sh"
    program.write_text(Path(prompt_reader.__file__).read_text())
    gate.write_text(GATE)
    lay_crew(bare_scene.root)
    config = CONFIG.format(slots=wanted.slots, python=sys.executable, program=program, gate=gate)
    (bare_scene.root / ".crew" / "config.toml").write_text(config)
    for file in SHARED:
        (bare_scene.root / file).write_text("the first line\n")
    bare_scene.git("add", "--", *SHARED)
    bare_scene.git("commit", "-q", "-m", "The shared files")
    bare_scene.ok("quest", "new", "-", "--slots", str(wanted.slots), stdin=wanted.text)
    return bare_scene, wanted


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "begun",
    [1, pytest.param(2, marks=pytest.mark.faults), pytest.param(3, marks=pytest.mark.faults)],
    indirect=True,
)
def test_eight_items_with_conflicts_are_built_and_nobody_is_blocked(begun):
    scene, wanted = begun
    running = scene.start("run", "--drain", "-q")
    _, err = running.communicate(timeout=280)
    assert running.returncode == 0, err
    quest = scene.ok("quest", "show", "1", "--json").json
    assert (quest["state"], quest["steps_merged"]) == ("complete", 8)
    _check_files(scene, wanted)
    sessions, completed, came_back = _sessions(quest), _completed(quest), _came_back(scene)
    conflicts = came_back["conflict"]
    print(f"{conflicts} conflicts with {wanted.slots} slots; sessions of each role: {sessions}")
    assert conflicts >= 3, "there is nothing to resolve"
    assert came_back == {"conflict": conflicts}
    once = dict.fromkeys(("chaoswhisperer", "pathseeker", "lawbringer"), 1)
    built = {"codeweaver": 8 + 1, "siegemaster": 8}  # one was in a hurry, and is asked again
    assert completed == {**once, **built, "spiritmender": conflicts + 1}  # and one gate was red
    assert sessions == {**once, **built, "spiritmender": sessions["spiritmender"]}
    assert sessions["spiritmender"] <= conflicts + 1


def _check_files(scene, wanted: Request) -> None:
    for file, lines in wanted.files.items():
        found = scene.git("show", f"main:{file}").splitlines()
        assert sorted(set(found) - {"the first line"}) == lines, file
        assert len(found) == len(set(found)), f"{file} has a line twice"


def _sessions(quest: dict) -> dict[str, int]:
    """How many sessions each role had, in the request and in all its items."""
    parts = [quest, *quest["steps"]]
    return dict(Counter(one["role"] for part in parts for one in part["sessions"]))


def _completed(quest: dict) -> dict[str, int]:
    """How often each role finished its part."""
    said = [one for part in [quest, *quest["steps"]] for one in part["said"]]
    return dict(Counter(one["role"] for one in said if one["signal"] == "complete"))


def _came_back(scene) -> dict[str, int]:
    """Why the merge queue sent items back, and that nobody was asked or blocked for it."""
    with closing(find_workplace(scene.root).db) as db:
        world = load_world(db)
        facts = [fact for _, fact in facts_after(db)]
    assert not world.questions
    assert not [fact for fact in facts if fact.trigger == "retries_spent"]
    backs = [fact for fact in facts if fact.kind == "run" and fact.trigger == "sent_back"]
    return dict(Counter(str(fact.changes["ask"]) for fact in backs))
