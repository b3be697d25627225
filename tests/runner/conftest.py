"""Repositories with a crew, shut off from whoever runs the tests."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from crew.system.processes.ownership import kill_leftovers
from repositories import lay_repository
from runner.scene import GATE, DriverScene
from surroundings import ANN, QUICK, own_home

FILES = {"readme.txt": "hello\n", "shared.txt": "top\n"}
HOME = f'{ANN}{QUICK}[protocol "file"]\n\tallow = always\n'


@pytest.fixture(scope="module", autouse=True)
def lonely(tmp_path_factory) -> Iterator[None]:
    with own_home(tmp_path_factory, HOME):
        yield


@pytest.fixture
def make_scene(tmp_path) -> Iterator[Callable[..., DriverScene]]:
    with scenes_in(tmp_path) as make:
        yield make


@contextmanager
def scenes_in(folder: Path) -> Iterator[Callable[..., DriverScene]]:
    """Makes repositories with a gate; whatever their crews still run at the end is ended.

    `PLACE` in a script or a config stands for the folder, where agents may leave proofs.
    """
    made: list[DriverScene] = []

    def make(
        script=None, *, tasks=(), config="", name="repo", files=None, programs=None, **options
    ) -> DriverScene:
        for program, text in (programs or {}).items():
            (folder / program).write_text(text)
            (folder / program).chmod(0o755)
        scene = DriverScene(
            path=folder / str(len(made)) / name, options={"patience_s": 0.5, **options}
        )
        scene.tasks.extend({"title": t} if isinstance(t, str) else t for t in tasks)
        lay_repository(scene.path, {**FILES, **(files or {})})
        configure(scene, json.dumps(script or {}), config, str(folder))
        made.append(scene)
        return scene

    yield make
    for scene in made:
        scene.end()
        if (scene.path / ".crew" / "crew.db").exists():
            workplace = scene.workplace
            kill_leftovers(workplace.repo_id)
            workplace.db.close()


def configure(scene: DriverScene, script: str, config: str, place: str) -> None:
    """A quick backoff and the gate, unless the test has tables of its own for them."""
    file = scene.path.parent / "script.json"
    file.write_text(script.replace("PLACE", place))
    tables = {"run": "backoff_s = 0.01", "complete": f"command = {json.dumps(GATE)}"}
    text = f"[agents.scripted]\nscript = {json.dumps(str(file))}\n"
    for table, keys in tables.items():
        if f"[{table}]" not in config:
            text += f"[{table}]\n{keys}\n"
    scene.write({".crew/config.toml": text + config.replace("PLACE", place)})
