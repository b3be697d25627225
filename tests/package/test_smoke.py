"""What a build makes, installed into an empty environment and used from outside the checkout.

`make package` runs it and leaves the tested wheel and sdist in `dist/`.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import crew

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0
AGENT = 'echo "$CREW_TASK_ID" > made && git add made && git commit -q -m made && echo DONE'

pytestmark = pytest.mark.package


@dataclass(frozen=True)
class Built:
    """The two files of a release, and a wheel made from nothing but the sdist."""

    wheel: Path
    sdist: Path
    second_wheel: Path


def _build(source: Path, *targets: str, into: Path) -> None:
    """Without isolation: the environment of the tests has what a build needs."""
    options = [part for target in targets for part in ("-t", target)]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *options, "-d", into],
        cwd=source,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    dist, away = ROOT / "dist", tmp_path_factory.mktemp("away")
    shutil.rmtree(dist, ignore_errors=True)
    _build(ROOT, "sdist", "wheel", into=dist)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(away, filter="data")
    (source,) = away.iterdir()
    _build(source, "wheel", into=away / "dist")
    (second,) = (away / "dist").iterdir()
    return Built(wheel=wheel, sdist=sdist, second_wheel=second)


def _tracked(folder: str) -> set[str]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).exists()}


def _content(wheel: Path) -> dict[str, str]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}


def test_the_wheel_holds_the_whole_package_and_the_manual_and_nothing_else(built):
    names = set(_content(built.wheel))
    expected = {name.removeprefix("src/") for name in _tracked("src/crew")}
    assert {name for name in names if name.startswith("crew/")} == expected
    assert {"crew/py.typed", "crew/config/defaults.toml"} <= expected
    others = {name.split("/", 1)[1] for name in names - expected}
    pages = {name for name in others if name.startswith("data/share/man/man1/")}
    assert {"crew.1", "git-crew.1", "crew-new.1"} <= {name.split("/")[-1] for name in pages}
    assert others - pages == {
        *("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    }


def test_the_sdist_holds_what_a_build_needs_and_makes_the_same_wheel(built):
    with tarfile.open(built.sdist) as archive:
        names = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    own = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore", "PKG-INFO"}
    assert names == own | _tracked("src/crew") | _tracked("docs")
    assert _content(built.second_wheel) == _content(built.wheel)


@dataclass(frozen=True)
class Newcomer:
    """A person with an empty home, a new environment, and git."""

    env: Path
    home: Path

    def call(self, *argv: str, cwd: Path | None = None, **variables: str) -> str:
        environment = {
            "PATH": f"{self.env / 'bin'}:{os.defpath}",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            **variables,
        }
        done = subprocess.run(
            argv,
            cwd=cwd or self.home,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture(scope="module", params=["wheel", "second_wheel"])
def newcomer(request, built, tmp_path_factory):
    env, home = tmp_path_factory.mktemp("env"), tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\n\tname = Ann\n\temail = ann@example.org\n")
    python = [sys.executable, "-m"]
    make = [*python, "venv", "--without-pip", env]
    install = [*python, "pip", "-q", "--python", env, "install", getattr(built, request.param)]
    for command in (make, install):
        subprocess.run(command, cwd=home, check=True, timeout=PATIENCE_S)
    return Newcomer(env=env, home=home)


def test_a_newcomer_installs_it_and_has_a_task_merged(newcomer):
    assert newcomer.call("crew", "--version") == f"crew {crew.__version__}\n"
    assert newcomer.call("git", "crew", "--version") == f"crew {crew.__version__}\n"
    where = newcomer.call(
        "python", "-c", "from crew import Crew; import crew; print(crew.__file__)"
    )
    assert Path(where.strip()).is_relative_to(newcomer.env)
    repository = newcomer.home / "repository"
    newcomer.call("git", "init", "-q", "-b", "main", str(repository))
    newcomer.call("git", "commit", "-q", "--allow-empty", "-m", "first", cwd=repository)
    _have_a_task_merged(newcomer, repository)
    assert "quest" in newcomer.call("crew", "workflows", cwd=repository)
    assert "[run]" in newcomer.call("crew", "config", "template", cwd=repository)


def _have_a_task_merged(newcomer: Newcomer, repository: Path) -> None:
    newcomer.call("crew", "init", cwd=repository)
    for key, value in {
        "agents.sh.command_template": f"sh -c '{AGENT}'",
        "agents.worker_default": "sh",
    }.items():
        newcomer.call("crew", "config", "set", key, value, cwd=repository)
    assert newcomer.call("crew", "new", "--title", "x", cwd=repository) == "1\n"
    newcomer.call("crew", "run", "--agents", "1", "--drain", cwd=repository)
    assert newcomer.call("git", "show", "main:made", cwd=repository) == "1\n"
    assert "A " in newcomer.call("git", "crew", "ps", cwd=repository)


@pytest.mark.skipif(shutil.which("man") is None, reason="there is no man")
def test_git_and_man_find_the_manual_of_an_environment_on_the_path(newcomer):
    plain = {"MANPAGER": "cat", "MANWIDTH": "80", "GIT_PAGER": "cat"}
    for argv in (("man", "crew"), ("git", "crew", "--help")):
        assert "crew - Run a crew of coding agents" in newcomer.call(*argv, **plain)
    assert "crew new [OPTIONS]" in newcomer.call("man", "crew-new", **plain)
