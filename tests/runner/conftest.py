"""Repositories with a crew, shut off from whoever runs the tests."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from crew.agents.ownership import kill_leftovers
from runner.scene import GATE, Scene


@pytest.fixture(autouse=True)
def lonely(monkeypatch, tmp_path_factory):
    """No configuration and no variables of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(("GIT_", "CREW_")) and name != "CREW_REQUIRE_ALL":
            monkeypatch.delenv(name)
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text(
        "[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"
        "[core]\n\tfsync = none\n[gc]\n\tauto = 0\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture
def make_scene(tmp_path) -> Iterator[Callable[..., Scene]]:
    """A repository with a gate; whatever its crew still runs after the test is ended."""
    made: list[Scene] = []

    def make(
        script=None, *, tasks=(), config="", name="repo", files=None, programs=None, **options
    ) -> Scene:
        for program, text in (programs or {}).items():
            (tmp_path / program).write_text(text)
            (tmp_path / program).chmod(0o755)
        place = tmp_path / str(len(made))
        scene = Scene(path=place / name, options={"patience_s": 0.5, **options})
        scene.tasks.extend({"title": t} if isinstance(t, str) else t for t in tasks)
        scene.path.mkdir(parents=True)
        scene.git("init", "-q")
        scene.commit({"readme.txt": "hello\n", "shared.txt": "top\n", **(files or {})}, "first")
        configure(scene, script or {}, config.replace("PLACE", str(tmp_path)))
        made.append(scene)
        return scene

    yield make
    for scene in made:
        if (scene.path / ".crew" / "crew.db").exists():
            workplace = scene.workplace
            kill_leftovers(workplace.repo_id)
            workplace.db.close()


def configure(scene: Scene, script: dict, config: str) -> None:
    """Later lines of `config` win over nothing: a table may stand in one place only."""
    place = scene.path.parent / f"{scene.path.name}-script.json"
    place.write_text(json.dumps(script))
    tables = {"run": "backoff_s = 0.01", "complete": f"command = {json.dumps(GATE)}"}
    text = f"[agents.scripted]\nscript = {json.dumps(str(place))}\n"
    for table, keys in tables.items():
        if f"[{table}]" not in config:
            text += f"[{table}]\n{keys}\n"
    scene.write({".crew/config.toml": text + config})


@pytest.fixture
def outside(tmp_path) -> Path:
    """A folder for what agents leave behind as proof."""
    folder = tmp_path / "proof"
    folder.mkdir()
    return folder
