"""`crew workflows`: what there is, what one looks like, and what is wrong with a broken one."""

import pytest

from crew.config.workflow_files import BUILT_IN

NAMES = ["claudex", "council", "pair", "plan", "quest", "solo"]


def test_the_built_in_ones_are_listed_with_and_without_a_repository(scene, tmp_path):
    assert [line.split()[0] for line in scene.ok("workflows").lines] == ["NAME", *NAMES]
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    listed = scene.ok("workflows", "--json", cwd=nowhere).json
    assert [one["name"] for one in listed] == NAMES
    assert {one["where"] for one in listed} == {"built in"}
    assert all(one["error"] is None for one in listed)


def test_one_is_drawn_with_its_stages_roles_limits_and_ways(scene):
    drawn = scene.ok("workflows", "quest").out
    for words in (
        "requirements: chaoswhisperer",
        "plan: pathseeker (plans the items)",
        "walk: every item, 3 at a time",
        "ward: the gate (3 times at most)",
        "├─ green ─▶ siege",
        "mend: spiritmender (takes back unmerged work)",
        "signals complete, needs-role-followup; often followed by spiritmender; 2 retries",
    ):
        assert words in drawn


@pytest.mark.parametrize("name", NAMES)
def test_its_data_are_those_of_the_file(scene, name):
    view = scene.ok("workflows", name, "--json").json
    text = (BUILT_IN / f"{name}.toml").read_text()
    if 'extends = "quest"' in text:
        text += (BUILT_IN / "quest.toml").read_text()
    for stage in (*view["stages"], *view["step_stages"]):
        assert f'name = "{stage["name"]}"' in text
        assert all(f'{outcome} = "{to}"' in text for outcome, to in stage["routes"].items())
    assert text.count("[roles.") == len(view["roles"])


def test_a_broken_file_is_named_and_the_others_are_still_listed(scene):
    folder = scene.root / ".crew/workflows"
    folder.mkdir()
    solo = (BUILT_IN / "solo.toml").read_text()
    (folder / "mine.toml").write_text(solo.replace("one agent", "my agent"))
    (folder / "bad.toml").write_text(solo.replace('role = "worker"', 'role = "walker"'))
    said = scene.crew("workflows")
    assert said.code == 1
    assert [line.split()[0] for line in said.lines] == ["NAME", *NAMES, "mine"]
    assert ".crew/workflows/mine.toml" in said.out
    listed = scene.crew("workflows", "--json")
    assert listed.code == 1
    bad = next(one for one in listed.json if one["name"] == "bad")
    assert bad["error"]["code"] == "invalid_workflow"
    assert bad["error"]["message"] in said.err
    assert "walker" in scene.refused(2, "invalid_workflow", "workflows", "bad").message
    assert scene.ok("workflows", "mine").out.startswith("mine: my agent works")


def test_a_name_that_nobody_has_is_answered_with_the_nearest(scene):
    assert " quest?" in scene.refused(3, "not_found", "workflows", "qest").hint
