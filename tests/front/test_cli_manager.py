"""`crew manager`: an agent that works through the board with crew's own commands."""

import json

import pytest

from agents.conftest import need
from crew.system.processes.process import working_bwrap

MANAGER = """\
cat > "$SCENE/manager-prompt"
case "$(cat "$SCENE/manager-plan" 2>/dev/null)" in
  close) crew close 1 --reason superseded ;;
  write) echo x > written-by-manager ; git commit -q --allow-empty -m mine ;;
  fail) exit 3 ;;
esac
echo "1: a person must choose"
echo DONE
"""


@pytest.fixture
def managed(scene):
    script = scene.folder / "manager.sh"
    script.write_text(MANAGER)
    config = scene.root / ".crew" / "config.toml"
    config.write_text(
        config.read_text()
        + f'[agents.boss]\nrole = "manager"\ncommand_template = "sh {script}"\n'
        + f'prompt_via = "stdin"\nenv = {{ SCENE = "{scene.folder}" }}\n'
    )
    return scene


def auto(scene, *more):
    return scene.crew("manager", "boss", "--auto", *more)


def test_an_empty_board_needs_no_manager(managed):
    said = auto(managed)
    assert (said.code, "nothing is open" in said.err) == (0, True)
    assert not (managed.folder / "manager-prompt").exists()


def test_only_a_manager_manages(managed):
    refused = managed.refused(2, "not_a_manager", "manager", "sh", "--auto")
    assert "boss, claude-manager" in refused.hint
    managed.refused(3, "not_found", "manager", "nobody")


@pytest.mark.parametrize("how", [(), ("--auto",)])
def test_a_manager_whose_program_is_missing_is_not_started(managed, how):
    managed.configure('[agents.ghost]\nrole = "manager"\ncommand_template = "no-such-program"\n')
    managed.ok("new", "--title", "one")
    refused = managed.refused(1, "not_installed", "manager", "ghost", *how)
    assert "no-such-program" in refused.message
    assert "`crew manager NAME`" in refused.hint


def test_the_manager_decides_and_the_board_is_empty(managed):
    managed.ok("new", "--title", "superseded")
    (managed.folder / "manager-plan").write_text("close")
    assert auto(managed).code == 0
    assert managed.ok("show", "1", "--json").json["status"] == "closed"


def test_what_it_cannot_decide_is_listed_with_the_reason(managed):
    managed.ok("new", "--title", "choose a colour")
    managed.ok("new", "--title", "paint it", "--after", "1")
    said = auto(managed, "--json")
    assert said.code == 6
    document, _ = json.JSONDecoder().raw_decode(said.out)
    assert [(one["task"], one["why"]) for one in document["open"]] == [
        ("1", "ready to start"),
        ("2", "waits for 1"),
    ]


def test_it_is_told_the_board_and_its_commands(managed):
    managed.ok("new", "--title", "choose a colour")
    auto(managed)
    told = (managed.folder / "manager-prompt").read_text()
    assert "1 [todo] choose a colour: ready to start" in told
    assert "crew close" in told
    assert "crew retry" in told


def test_it_cannot_change_a_file_of_the_repository(managed):
    need(working_bwrap(), "bwrap")
    managed.ok("new", "--title", "choose a colour")
    (managed.folder / "manager-plan").write_text("write")
    auto(managed)
    assert not (managed.root / "written-by-manager").exists()


def test_a_manager_that_fails_is_told_as_that(managed):
    managed.ok("new", "--title", "choose a colour")
    (managed.folder / "manager-plan").write_text("fail")
    managed.refused(1, "manager_failed", "manager", "boss", "--auto")
