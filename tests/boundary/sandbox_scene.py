"""A person's machine in small: a home with secrets, a checkout with a crew, an agent's folder."""

import asyncio
import os
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

from crew.agents.adapter import StepOrder
from crew.agents.environment import agent_environment, prepare_files
from crew.config.model import AgentSettings
from crew.runner.sandbox.confinement import for_command, for_step
from crew.system.processes.process import ProcessOrder, load_wrapper, run_process
from crew.system.processes.start_command import confined
from crew.system.sandbox.allowed import Allowed
from crew.workplace import Workplace, make_workplace

SECRETS = (".ssh/id_x", ".aws/credentials", ".netrc", ".config/gh/hosts.yml", ".bashrc")
PERSON = "[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"


@dataclass
class Said:
    code: int
    out: str


@dataclass
class Place:
    """A repository with a crew, and a task's folder with a git directory of its own."""

    root: Path
    home: Path
    folder: Path
    door: Path
    workplace: Workplace
    mode: str = "strict"
    kind: AgentSettings = field(default_factory=lambda: AgentSettings(name="x", adapter="command"))

    def configure(self, text: str) -> None:
        if "mode" not in text:
            text = text.replace("[sandbox]\n", f'[sandbox]\nmode = "{self.mode}"\n')
        (self.root / ".crew" / "config.toml").write_text(text)
        self.workplace.__dict__.pop("settings", None)

    def order(self, **more) -> StepOrder:
        order = StepOrder(
            key="1/1/1/1",
            agent="A",
            kind="x",
            worktree=self.folder,
            prompt="do it",
            session="s",
            resume=False,
            log=self.workplace.task_log("1"),
            env={"CREW_DOOR": str(self.door), "CREW_REPO": str(self.root)},
        )
        return replace(order, **more)

    def step(self, script: str, **more) -> Said:
        """What a shell script in a step does."""
        order = self.order(**more)
        prepare_files(order)
        return self._run(script, order, for_step(self.workplace, order, self.kind))

    def at_a_terminal(self, script: str, prompt: Path) -> Said:
        """What a shell script of an agent at a terminal does."""
        order = self.order()
        prepare_files(order)
        allowed = for_step(self.workplace, order, self.kind, terminal_prompt=prompt)
        return self._run(script, order, allowed)

    def gate(self, script: str) -> Said:
        """What a shell script in a gate does."""
        return self._run(script, self.order(), for_command(self.workplace, (script,), self.folder))

    def by_hand(self, script: str) -> Said:
        """What a shell script does that a person starts, as `crew exec` does."""
        argv = ("sh", "-c", f"exec 2>&1\n{script}")
        allowed = for_command(self.workplace, argv, self.folder)
        wrapper = load_wrapper("auto", allowed)
        command = confined(argv, allowed, wrapper=wrapper, cwd=self.folder)
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return Said(done.returncode, done.stdout)

    def _run(self, script: str, order: StepOrder, allowed: Allowed) -> Said:
        chunks: list[bytes] = []
        process = ProcessOrder(
            argv=("sh", "-c", f"exec 2>&1\n{script}"),
            cwd=order.worktree,
            env=agent_environment(order, extra={}, caller=os.environ),
            log=order.log,
            marker=f"boundary/{self.root}",
            timeout_s=60.0,
            idle_timeout_s=60.0,
            sandbox=self.mode,
            allowed=allowed,
        )
        end = asyncio.run(
            run_process(process, on_started=lambda _pid: None, on_output=chunks.append)
        )
        assert not end.message, end.message
        return Said(end.code, b"".join(chunks).decode())


def git(*words: str | Path, at: Path) -> str:
    done = subprocess.run(
        ["git", *words], cwd=at, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def make_place(folder: Path, home: Path) -> Place:
    for name in SECRETS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("secret\n")
    (home / ".gitconfig").write_text(PERSON)
    (folder / "door").mkdir()
    (folder / "loose").write_text("secret\n")
    root = folder / "my repo"
    root.mkdir()
    git("init", "-q", at=root)
    (root / "readme").write_text("hello\n")
    git("add", "readme", at=root)
    git("commit", "-qm", "first", at=root)
    (root / "mine").write_text("not committed\n")
    workplace = make_workplace(root)
    (workplace.worktrees / "2").mkdir(parents=True)
    (workplace.worktrees / "2" / "theirs").write_text("of another task\n")
    scripts = workplace.folder / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "review-2-prompt.txt").write_text("secret\n")
    task = workplace.worktrees / "1"
    git("init", "-q", "-b", "crew-1", task, at=folder)
    alternates = task / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{root}/.git/objects\n")
    git("reset", "-q", "--hard", git("rev-parse", "HEAD", at=root), at=task)
    return Place(root=root, home=home, folder=task, door=folder / "door" / "s", workplace=workplace)
