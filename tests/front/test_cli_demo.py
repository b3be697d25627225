"""`crew demo` as somebody sees it who has just installed crew."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from front.conftest import CREW

TASKS = 8


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """The demo, once, with its repository kept."""
    folder = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [CREW, "demo", "--keep", "--json"],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


pytestmark = pytest.mark.timeout(120)


def log(shown, *args):
    root = shown[0]["root"]
    done = subprocess.run(
        ["git", "log", "--format=%s", *args], cwd=root, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def runs(shown):
    files = Path(shown[0]["root"], ".crew", "runs").glob("*/manifest.json")
    return {file.parent.name: json.loads(file.read_text()) for file in files}


def test_everything_is_merged_and_delivered(shown):
    assert list(shown[0]["tasks"].values()) == ["merged"] * TASKS
    merges = [
        subject for subject in log(shown, "--first-parent", "main") if "Merge crew-" in subject
    ]
    assert len(merges) == TASKS


def test_one_gate_is_red_and_one_conflict_is_solved(shown):
    subjects = log(shown, "main")
    assert "Discount from 100 on, not from 101" in subjects
    assert any("Merge commit" in subject and "crew-5" in subject for subject in subjects)


def test_one_review_fails_first_and_its_note_is_heeded(shown):
    assert "One item is an item" in log(shown, "main")
    run = runs(shown)["6.1"]
    assert run["history"].count("reviewing") == 2
    assert run["reviewers"] == ["critic"]


def test_one_question_is_asked_answered_and_heeded(shown):
    document, narrated = shown
    (question,) = document["questions"]
    assert (question["task"], question["status"], question["answer"]) == ("8", "answered", "1.0")
    assert "task 8 asks: Which version is this?" in narrated
    assert "crew answer q1 '1.0'" in narrated
    assert Path(document["root"], "NOTES.md").read_text().startswith("# 1.0\n")
    assert runs(shown)["8.1"]["state"] == "completed"
