"""`crew workspace`: the list of repositories that one view shows together."""

import os
import tomllib
from pathlib import Path

import pytest

import crew
from front.conftest import CREW, lay_crew
from repositories import lay_repository

SOURCES = Path(crew.__file__).parents[1]
"""An agent's process gets no such variable of the caller, and must run the same crew."""


@pytest.fixture
def other(tmp_path):
    """A second repository with a crew."""
    root = tmp_path / "elsewhere" / "my repo"
    lay_repository(root, {"readme": "hello\n"})
    lay_crew(root)
    return root


def listed(scene):
    return scene.ok("workspace", "list", "--json").json


def file():
    return Path(os.environ["HOME"]) / ".config" / "crew" / "workspaces.toml"


def test_repositories_are_added_listed_and_removed(scene, other):
    said = scene.crew("workspace", "list")
    assert (said.code, said.out) == (0, "")
    assert "crew workspace add" in said.err
    assert listed(scene) == []

    added = scene.ok("workspace", "add", "--json", cwd=scene.root).json
    assert added == {"name": "my repo", "path": str(scene.root.resolve()), "state": "ready"}
    assert scene.ok("workspace", "add", str(scene.root)).code == 0  # once more changes nothing
    refusal = scene.refused(5, "workspace_taken", "workspace", "add", str(other))
    assert "my repo" in refusal.message
    assert "--name" in refusal.hint
    scene.ok("workspace", "add", str(other), "--name", "second")
    assert [one["name"] for one in listed(scene)] == ["my repo", "second"]
    assert tomllib.loads(file().read_text())["workspace"][1] == {
        "name": "second",
        "path": str(other.resolve()),
    }
    table = scene.ok("workspace", "list").lines
    assert table[0].split() == ["NAME", "PATH", "STATE"]
    assert "second" in table[2]
    assert "ready" in table[2]

    scene.ok("workspace", "add", str(other), "--name", "other")  # another name replaces the old
    assert [one["name"] for one in listed(scene)] == ["my repo", "other"]
    other.rename(other.with_name("moved"))
    assert [one["state"] for one in listed(scene)] == ["ready", "missing"]
    assert scene.ok("workspace", "remove", "other", "--json").json["state"] == "missing"
    refusal = scene.refused(3, "not_found", "workspace", "remove", "othr")
    assert "'othr'" in refusal.message
    assert [one["name"] for one in listed(scene)] == ["my repo"]


def test_only_a_repository_with_a_crew_can_be_added(bare_scene, tmp_path):
    assert bare_scene.refused(2, "no_crew", "workspace", "add").hint.startswith("run `crew init`")
    assert bare_scene.crew("workspace", "add", str(tmp_path)).code != 0
    assert not file().exists()


def test_the_folder_of_the_person_is_where_they_say(scene, tmp_path):
    place = tmp_path / "own config"
    scene.ok("workspace", "add", XDG_CONFIG_HOME=str(place))
    assert (place / "crew" / "workspaces.toml").is_file()
    assert listed(scene) == []


def test_a_file_that_cannot_be_read_is_named(scene):
    file().parent.mkdir(parents=True, exist_ok=True)
    for text in ("[[workspace", "[[workspace]]\nname = 'x'\n", "other = 1\n", "workspace = 3\n"):
        file().write_text(text)
        refusal = scene.refused(2, "bad_workspaces", "workspace", "list")
        assert str(file()) in refusal.message
        assert scene.crew("workspace", "add").code == 2
        assert file().read_text() == text


def test_an_agent_may_look_at_the_list_and_not_change_it(scene):
    agent = scene.folder / "agent.sh"
    agent.write_text(
        f"export PYTHONPATH='{SOURCES}'\n"
        'crew workspace list --json > "$SCENE/listed"; echo $? >> "$SCENE/listed"\n'
        'crew workspace add 2> "$SCENE/refused"; echo $? >> "$SCENE/refused"\n' + agent.read_text()
    )
    scene.ok("new", "--title", "first")
    path = f"{CREW.parent}:{os.environ['PATH']}"
    assert scene.crew("run", "--drain", PATH=path).code == 0
    assert (scene.folder / "listed").read_text().split() == ["[]", "0"]
    refused = (scene.folder / "refused").read_text()
    assert "is for people" in refused
    assert refused.split()[-1] == "4"
    assert not file().exists()


def test_a_repository_that_is_not_there_is_not_found(scene):
    scene.refused(3, "folder_not_found", "workspace", "add", "not/there")
