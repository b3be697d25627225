"""A real CLI, a scripted model, and an environment in which the one can reach only the other."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from agents.conftest import marker, need
from agents.running import written
from crew.agents.adapter import AgentSpec, StepOrder, adapter_for
from crew.domain.kernel.frozen import frozen
from real_clis import cli_kinds
from real_clis.cli_kinds import CLIS, QUIET, Cli, claude_env
from real_clis.scripted_model import Say, ScriptedModel, bash
from surroundings import ANN, QUICK
from warm import warm_python

__all__ = ["marker"]

CREW = Path(sys.executable).with_name("crew")
GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},  # else it reports its use
}
SLOW = ("opencode", "gemini")
ALL_CLIS = [pytest.param(name, marks=[pytest.mark.clis] if name in SLOW else []) for name in CLIS]
INSTALLED = Path(sys.prefix) / "clis" / "node_modules" / ".bin"  # by install.sh


def find_cli(name: str) -> str | None:
    """Where a program is; the one that was tested with comes first."""
    return shutil.which(name, path=f"{INSTALLED}:{os.environ['PATH']}")


def as_toml(values: Mapping[str, str]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """On the disk: Codex shuts its commands out of /dev/shm, where `make test` keeps its files."""
    with tempfile.TemporaryDirectory(
        prefix="crew-", dir="/tmp", ignore_cleanup_errors=True
    ) as path:
        yield Path(path)


@pytest.fixture
def claude() -> str:
    need(found := find_cli("claude"), "claude")
    return str(found)


@pytest.fixture
def codex() -> str:
    need(found := find_cli("codex"), "codex")
    return str(found)


@pytest.fixture
def opencode() -> str:
    need(found := find_cli("opencode"), "opencode")
    return str(found)


@pytest.fixture
def gemini() -> str:
    need(found := find_cli("gemini"), "gemini")
    return str(found)


@pytest.fixture(params=ALL_CLIS)
def cli(request) -> Cli:
    """Each of the four CLIs."""
    request.getfixturevalue(request.param)
    return CLIS[request.param]


@pytest.fixture
def model():
    """The scripted model; to ask anybody else is refused and fails the test."""
    with ScriptedModel() as model:
        yield model
    assert (model.outside, model.faults) == ([], [])


@pytest.fixture
def script(model):
    """Lay out what the model does next; the scenario, whose `asked` grows as it is played."""

    def script(*steps, name="play"):
        model.play(name, steps)
        return model.scenarios[name]

    return script


@pytest.fixture
def caller(tmp_path, model):
    """The whole environment of whoever calls: nothing of the real one but the system's programs."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    (home / ".gitconfig").write_text(ANN + QUICK)
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(GEMINI_SETTINGS))
    found = (find_cli(name) for name in (*CLIS, "node", "git"))
    folders = dict.fromkeys(str(Path(program).parent) for program in found if program)
    proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), model.address)
    return {
        "PATH": ":".join([*folders, "/usr/bin", "/bin"]),
        "HOME": str(home),
        "TMPDIR": str(temporary),  # not above HOME, where codex would not put its helpers
        "LANG": "C.UTF-8",
        **proxies,
        "NO_PROXY": "127.0.0.1",
        **QUIET,
    }


@pytest.fixture
def model_env(model):
    """What points Claude Code at the script."""
    return claude_env(f"{model.address}/s/play")


@pytest.fixture
def git(caller):
    def git(*arguments, at):
        done = subprocess.run(
            ["git", *arguments], cwd=at, env=caller, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    return git


@pytest.fixture
def repo(tmp_path, git):
    path = tmp_path / "repo"
    path.mkdir()
    git("init", "-q", at=path)
    (path / "readme.txt").write_text("hello\n")
    git("add", "readme.txt", at=path)
    git("commit", "-qm", "first", at=path)
    return path


@pytest.fixture
def order(tmp_path, repo, git, marker):
    """The first step of a session, in a worktree."""
    worktree = tmp_path / "worktrees" / "1"
    git("worktree", "add", "-q", "-b", "crew-1", str(worktree), at=repo)
    return StepOrder(
        key="run-1/1/1/1",
        agent="A",
        kind="claude",
        worktree=worktree,
        prompt="do it",
        session=str(uuid.uuid4()),
        resume=False,
        log=tmp_path / "logs" / "1.log",
        timeout_s=100.0,
        idle_timeout_s=100.0,
        env={"CREW_OWNER": marker, "CREW_GIT_DIR": str(repo / ".git")},
    )


@pytest.fixture
def agent(caller, model_env, claude):
    """The adapter of the real Claude Code."""

    def agent(*args, sandbox="auto", system_prompt="", **env):
        spec = AgentSpec(
            name="claude",
            adapter="claude",
            command=claude,
            args=args,
            env={**model_env, **env},
            sandbox=sandbox,
            system_prompt=system_prompt,
        )
        return adapter_for(spec, caller=caller)

    return agent


@pytest.fixture
def agent_of(caller, model):
    """The adapter of any of the CLIs, pointed at the script; `at` is another name of its host."""

    def agent_of(cli, *args, at="", **env):
        url = f"{at or model.address}/s/play"
        spec = AgentSpec(
            name=cli.name,
            adapter=cli.name,
            command=str(find_cli(cli.name)),
            args=(*cli.flags(url), *args),
            env={**cli.env(url), **env},
        )
        return adapter_for(spec, caller=caller)

    return agent_of


@pytest.fixture
def remembered(caller):
    """What sessions remember so far: it is written a moment after it was said."""

    def remembered():
        transcripts = Path(caller["HOME"]).glob(".claude/projects/*/*.jsonl")
        return "".join(path.read_text(errors="replace") for path in transcripts)

    return remembered


@pytest.fixture
def codex_flags(model):
    """What points Codex at the script."""
    return cli_kinds.codex_flags(f"{model.address}/s/play")


@pytest.fixture
def crew(repo, caller, model, claude):
    """The command line in a repository whose agent is Claude Code, pointed at the script.

    `crew.use` points another CLI at a script.
    """

    def start(*arguments):
        return warm_python().start_piped(["crew", *arguments], cwd=repo, env=caller)

    def crew(*arguments):
        running = start(*arguments)
        try:
            answer, said = running.communicate(timeout=100)
        finally:
            running.kill()
            running.communicate()
        assert running.returncode == 0, said
        return answer.strip()

    def configure(text):
        with (repo / ".crew" / "config.toml").open("a") as config:
            config.write(f"\n{text}\n")

    def use(cli, scenario="play", kind=""):
        url, kind = f"{model.address}/s/{scenario}", kind or cli.name
        flags = cli.flags(url)
        args = f"[agents.{kind}]\nargs = {json.dumps(flags)}\n" if flags else ""
        configure(f"{args}[agents.{kind}.env]\n{as_toml(cli.env(url))}")

    crew.use = use
    crew.start = start
    crew.configure = configure
    crew("init")
    configure(
        '[agents]\nworker_default = "claude"\n'
        '[complete]\ncommand = "grep -q hello new.txt"\n'
        "[run]\nbackoff_s = 0.01"
    )
    use(CLIS["claude"])
    return crew


@frozen
class Sign:
    """A file that an agent's tool waits for, in the one folder beside its own that it may read."""

    path: Path

    @property
    def awaited(self) -> Say:
        return bash(f"until [ -e {self.path} ]; do sleep 0.05; done")

    def give(self) -> None:
        self.path.touch()


@pytest.fixture
def sign(crew, tmp_path):
    folder = tmp_path / "signs"
    folder.mkdir()
    crew.configure(f'[sandbox]\nallow_read = ["{folder}"]')
    return Sign(path=folder / "go")


def has_queued(log):
    """Whether the program has taken in what it was told; what is sent reaches it a moment later."""
    return '"state":"queued"' in written(log)
