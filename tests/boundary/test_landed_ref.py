"""A landed ref that is damaged is put back where the record has it, and its line continues."""

import pytest

MISSING = "1" * 40


@pytest.fixture
def worked(scene):
    """A crew that merged one task and has another to do."""
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"
    scene.ok("new", "--title", "two")
    return scene


def landed(scene):
    return scene.root / ".git" / "refs" / "crew" / "landed" / "main"


@pytest.mark.parametrize("content", ["", "garbage\n", f"{MISSING}\n"])
def test_a_run_restores_it_and_lands_on_it(worked, content):
    landed(worked).write_text(content)
    worked.ok("run", "--drain")
    assert worked.status("2") == "merged"
    assert landed(worked).read_text().strip() == worked.git("rev-parse", "main")
    worked.ok("doctor")


def test_doctor_finds_it_and_repairs_it(worked):
    was = landed(worked).read_text()
    landed(worked).write_text("garbage")
    said = worked.crew("doctor", "--json")
    wrong = [one for one in said.json if one["state"] == "wrong"]
    assert (said.code, "landed refs" in [one["check"] for one in wrong]) == (1, True), wrong
    worked.ok("doctor", "--repair")
    assert landed(worked).read_text() == was
