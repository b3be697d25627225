"""A quest with the real CLIs, whose model uses nothing but the prompts that crew gives it."""

import json
import subprocess

import pytest

from real_clis.conftest import CREW, as_toml
from real_clis.reader import LAST, QUESTION, Reader, mark

NAMES = ("ant", "bee", "cat", "dog", "elk", "fox", "gnu", "hen", "ibis", "jay", "kiwi")
SEAL = "seal-7c0ffee5"


@pytest.fixture
def reader(model):
    model.scenarios["play"] = Reader()
    return model.scenarios["play"]


@pytest.fixture
def crew(repo, caller, model_env, codex, codex_flags):
    """Two slots of Claude Code and one of Codex, all with the same model behind them."""

    def crew(*arguments, code=0):
        done = subprocess.run(
            [CREW, *arguments],
            cwd=repo,
            env=caller,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return done.stdout.strip()

    crew("init")
    (repo / ".crew" / "config.toml").write_text(
        "[complete]\ncommand = \"! grep -rq '^<<<<<<<' --include=*.txt .\"\n"
        f"[agents.claude.env]\n{as_toml(model_env)}"
        f'[agents.codex]\nadapter = "codex"\ncommand = {json.dumps(codex)}\n'
        f'args = {json.dumps(codex_flags)}\n[agents.codex.env]\nFAKE_KEY = "dummy"\n'
    )
    for name, kind in (("A", "claude"), ("B", "codex"), ("C", "claude")):
        crew("spawn", name, "--agent", kind)
    return crew


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(2, id="three items"),
        pytest.param(11, id="twelve items", marks=[pytest.mark.faults, pytest.mark.timeout(1600)]),
    ],
)
def test_roles_carry_out_a_quest_from_what_their_prompts_say(crew, reader, repo, git, items):
    names = NAMES[:items]
    quest = crew("quest", "new", f"Write a file for each item. Items: {', '.join(names)}")
    crew("run", "--drain", code=6)  # a role asks, and nothing else can move
    (question,) = json.loads(crew("inbox", "--json"))
    assert question["question"] == QUESTION
    crew("answer", question["id"], f"Each file ends with the line {SEAL}.")
    crew("run", "--drain")
    assert reader.missing == []
    shown = json.loads(crew("quest", "show", quest, "--json"))
    assert (shown["state"], shown["steps_done"]) == ("complete", items + 1)
    files = {name: git("show", f"main:{name}.txt", at=repo) for name in (*names, LAST)}
    assert files[LAST].split() == [*sorted(map(mark, names)), SEAL], "it read what others built"
    assert {text.split()[-1] for text in files.values()} == {SEAL}
    index = git("show", "main:index.txt", at=repo).split()
    assert sorted(index) == sorted(names[:2]), "both sides of the conflict are there"
    assert reader.conflicts
    spoken = {"messages" in asked.path for asked in reader.turns}
    assert spoken == {True, False}, "both CLIs took part"
