"""Workflows as files: the built-in ones are sound, and each mistake is named with its place."""

import re
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from crew.config.workflow_files import (
    BUILT_IN,
    find_workflow,
    load_workflow,
    own_folder,
    workflow_files,
)
from crew.domain.kernel.errors import NotFound, UsageError
from crew.domain.rows.workflow import Does, as_text, from_text
from refusals import raises_code

ROOT = Path(__file__).parents[2]

SMALL = """\
description = "two who share the work"

[roles.writer]
owns = "the text"
retries = 2

[roles.planner]

[[stages]]
name = "plan"
role = "planner"
plans = true
complete = "walk"

[[stages]]
name = "walk"
steps = true
complete = "done"

[[step_stages]]
name = "write"
role = "writer"
takes_back = true
complete = "check"

[[step_stages]]
name = "check"
gate = true
green = "done"
red = "write"
limit = 4
"""


@pytest.fixture
def broken(tmp_path):
    """The words of the error about a workflow in which something stands for something else."""

    def words(old: str, new: str) -> str:
        assert old in SMALL
        file = tmp_path / "mine.toml"
        file.write_text(SMALL.replace(old, new, 1))
        with pytest.raises(UsageError) as refused:
            load_workflow(file)
        assert refused.value.message.startswith("mine.toml")
        assert refused.value.hint
        return f"{refused.value.message}; {refused.value.hint}"

    return words


def test_a_small_workflow_is_read_as_it_is_written(tmp_path):
    (tmp_path / "mine.toml").write_text(SMALL)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "writer.md").write_text("You write.\n")
    found = load_workflow(tmp_path / "mine.toml")
    assert (found.name, found.slots, found.most_steps, found.deepest) == ("mine", 3, 50, 3)
    assert found.roles["writer"].instructions == "You write."
    assert found.roles["planner"].instructions == ""
    assert [stage.does for stage in found.stages] == [Does.ROLE, Does.STEPS]
    check = found.step_stages[1]
    assert (check.limit, dict(check.routes)) == (4, {"green": "done", "red": "write"})


@pytest.mark.parametrize("name", ["claudex", "council", "pair", "plan", "quest", "solo"])
def test_every_built_in_workflow_is_sound_and_survives_being_kept(name):
    found = find_workflow(None, name)
    assert found.description
    assert all(role.owns for role in found.roles.values())
    assert from_text(as_text(found)) == found


def test_a_workflow_may_extend_a_built_in_one_and_say_only_what_differs(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('extends = "quest"\nslots = 7\n')
    mine, quest = load_workflow(file), find_workflow(None, "quest")
    assert mine == replace(quest, name="mine", slots=7)
    assert mine.roles["lawbringer"].instructions


@pytest.mark.parametrize("named", ["'quests'", "['quest']", "3"])
def test_only_a_built_in_workflow_can_be_extended(tmp_path, named):
    file = tmp_path / "mine.toml"
    file.write_text(f"extends = {named}\n")
    with pytest.raises(UsageError) as refused:
        load_workflow(file)
    assert f"extends names {named}" in refused.value.message
    assert "quest, solo" in refused.value.hint


def test_a_council_names_its_roles_and_how_long_it_may_last():
    council = next(s for s in find_workflow(None, "council").stages if s.does is Does.COUNCIL)
    assert council.roles == ("pathseeker", "codeweaver", "lawbringer")
    assert (council.rounds, council.limit) == (3, 3)
    assert dict(council.routes) == {"agreed": "walk", "objected": "plan"}


def test_each_role_of_the_quest_is_told_what_to_do():
    found = find_workflow(None, "quest")
    assert len(found.roles) == 6
    assert all(len(role.instructions) > 100 for role in found.roles.values())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('role = "writer"', 'role = "poet"', "step stage write: unknown role poet"),
        ('complete = "check"', 'complete = "done"', "step stage check: unreachable"),
        ('red = "write"', 'red = "wrte"', "check: red leads to wrte, which does not exist"),
        ('red = "write"\n', "", "check: nothing says where red leads"),
        ('name = "check"', 'name = "write"', "step stage write is defined twice"),
        ("plans = true\n", "", "stage walk: it runs items that no stage plans"),
        ("steps = true", "gate = true", "stage walk: gate cannot end with complete"),
        ("gate = true", "gate = true\nplans = true", "step stage check: only a role can plan"),
        ("gate = true", "gate = true\ntakes_back = true", "check: only a role can take back"),
        ('name = "plan"', 'name = "done"', "stage done: that is where every way ends"),
        ("retries = 2", "retrys = 2", "role writer: unknown key retrys, did you mean retries?"),
        ("limit = 4", "limt = 4", "stage check: unknown key limt, did you mean limit?"),
        ('description = "two', 'descripton = "two', "unknown key descripton"),
        ("limit = 4", 'limit = "4"', "stage check: limit must be a whole number of at least 1"),
        ("limit = 4", "limit = 0", "stage check: limit must be a whole number of at least 1"),
        ('red = "write"', "red = 5", "stage check: red must be a text"),
        ('red = "write"', 'red = ["write"]', "stage check: red must be a text"),
        ("plans = true", 'plans = "yes"', "stage plan: plans must be true or false"),
        ("gate = true", "gate = 1", "stage check: gate must be true or false"),
        ('owns = "the text"', "signals = 5", "role writer: signals must be a list of texts"),
        ('owns = "the text"', 'signals = "complete"', "signals must be a list of texts"),
        ('owns = "the text"', 'signals = ["finished"]', "role writer: finished is not a signal"),
        ('owns = "the text"', 'followups = ["poet"]', "role writer: unknown role poet"),
        ("gate = true", 'gate = true\nrole = "writer"', "stage check: name exactly one of"),
        ('name = "check"\n', "", "a stage has no name"),
        ("[roles.planner]", "[planner]", "unknown key planner"),
    ],
)
def test_a_mistake_is_named_with_its_place(broken, old, new, words):
    assert words in broken(old, new)


def test_a_mistake_in_a_table_is_named_with_its_line(broken):
    assert broken("retries = 2", "retrys = 2").startswith("mine.toml:5: role writer")
    assert broken('description = "two', 'slots = "two').startswith("mine.toml:1: the workflow")


def test_a_loop_that_nothing_ends_is_refused(broken):
    unlimited = SMALL.replace("retries = 2\n", "").replace("limit = 4\n", "")
    words = broken(SMALL, unlimited)
    assert "step stage write: a loop through it has no limit" in words
    assert "step stage check: a loop through it has no limit" in words


def test_a_workflow_begins_with_a_role(broken):
    first = SMALL[SMALL.index('[[step_stages]]\nname = "write"') :]
    turned = "\n".join(reversed(first.split("\n\n")))
    assert "step stage check: it is the first one, so a role must act in it" in broken(
        first, turned
    )


def test_stages_that_are_no_tables_are_refused(tmp_path):
    file = tmp_path / "mine.toml"
    for text in ('stages = "a"\n', "stages = [1]\n", "roles = 5\n", "[roles]\na = 5\n"):
        file.write_text(text)
        with raises_code(UsageError, "invalid_workflow"):
            load_workflow(file)
    file.write_text("description = 'nothing'\n")
    with raises_code(UsageError, "invalid_workflow"):
        load_workflow(file)
    file.write_bytes(b"\xff")
    with raises_code(UsageError, "unreadable_file"):
        load_workflow(file)


def test_a_file_of_the_repository_replaces_a_built_in_one(tmp_path):
    folder = own_folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / "pair.toml").write_text(SMALL)
    (folder / "mine.toml").write_text(SMALL)
    files = workflow_files(tmp_path)
    assert list(files) == ["claudex", "council", "pair", "plan", "quest", "solo", "mine"]
    assert find_workflow(tmp_path, "pair").description == "two who share the work"
    assert find_workflow(tmp_path, "mine") == replace(find_workflow(tmp_path, "pair"), name="mine")


def test_the_example_of_the_page_about_quests_can_be_used(tmp_path):
    page = (ROOT / "docs" / "quests.md").read_text()
    (example,) = [
        text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[[st" in text
    ]
    file = tmp_path / "docs.toml"
    file.write_text(example)
    found = load_workflow(file)
    assert [stage.name for stage in found.stages] == ["outline", "chapters", "read"]
    assert [stage.name for stage in found.step_stages] == ["write", "check"]
    assert (found.slots, found.most_steps, found.deepest) == (2, 12, 2)


def test_a_broken_file_does_not_keep_the_others_from_being_used(tmp_path):
    folder = own_folder(tmp_path)
    folder.mkdir(parents=True)
    (folder / "broken.toml").write_text("what?")
    assert find_workflow(tmp_path, "quest").name == "quest"
    with raises_code(UsageError, "unreadable_file", "broken.toml"):
        find_workflow(tmp_path, "broken")


def test_a_name_that_nobody_has_is_answered_with_the_nearest(tmp_path):
    with pytest.raises(NotFound) as refused:
        find_workflow(tmp_path, "qest")
    assert refused.value.hint == "did you mean quest?"
    with pytest.raises(NotFound) as refused:
        find_workflow(tmp_path, "zzz")
    assert "claudex, council, pair, plan, quest, solo" in refused.value.hint


def test_workflows_and_what_their_roles_are_told_are_part_of_a_wheel(tmp_path):
    build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path))
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    files = [*BUILT_IN.rglob("*.toml"), *BUILT_IN.rglob("*.md")]
    assert len(files) == 14
    for file in files:
        assert f"crew/config/workflows/{file.relative_to(BUILT_IN).as_posix()}" in packed
