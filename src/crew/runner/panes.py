"""Terminal sessions on this machine: one tmux session a task, which anybody may attach to."""

import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from crew.agents.adapter import DEFAULT_TEMPLATE
from crew.agents.command import LONGEST_ARGUMENT, template_values
from crew.agents.environment import agent_environment, prepare_files, shim_folder
from crew.agents.ownership import MARKER_VARIABLE, find_process
from crew.agents.templates import Value, expand
from crew.config.model import AgentSettings
from crew.domain.fact import Fact
from crew.domain.pane import Opened, ended
from crew.domain.run import Run
from crew.domain.step import StepOrder
from crew.domain.task import Task
from crew.domain.task_item import TaskItem
from crew.domain.world import World
from crew.runner.calls import agent_settings, agent_spec, pane_order
from crew.runner.workplace import Workplace

if TYPE_CHECKING:
    from crew.agents.tmux import Tmux


@dataclass(frozen=True, slots=True)
class Panes:
    """Opens and closes the sessions of this repository's own tmux server."""

    workplace: Workplace

    @property
    def server(self) -> "Tmux":
        from crew.agents.tmux import Tmux  # noqa: PLC0415 - most runners never open a terminal

        return Tmux(folder=self.workplace.folder)

    def open(self, run: Run, task: Task, item: TaskItem, *, session: str) -> Opened:
        """Repeatable: a session that is there already is the one that is meant."""
        from crew.agents.session_script import prompt_path, write_session_script  # noqa: PLC0415
        from crew.agents.tmux import open_session  # noqa: PLC0415

        settings = agent_settings(self.workplace, run.agent_kind)
        order = pane_order(self.workplace, run, task, item, session=session)
        name = f"task-{task.id}"
        marker = pane_marker(self.workplace, run)
        crew = shim_folder(order) / "crew"
        prepare_files(order)
        script = write_session_script(
            self._scripts,
            name,
            command=self._command(settings, order, run, prompt_path(self._scripts, name)),
            prompt=order.prompt,
            end_command=(str(crew), "-C", str(self.workplace.root), "_pane-ended", run.id),
        )
        environment = agent_environment(order, extra=settings.env, caller=os.environ)
        environment["CREW_PROMPT_FILE"] = str(prompt_path(self._scripts, name))
        environment[MARKER_VARIABLE] = marker
        live = open_session(
            self.server,
            run.pane,
            script=script,
            cwd=order.worktree,
            env=environment,
            title=f"#{task.id} {item.title}",
            agent=run.agent_kind,
            log=self.workplace.task_log(task.id),
        )
        return Opened(pid=live.pid, started=live.started)

    def close(self, run: Run) -> None:
        from crew.agents.tmux import close_session  # noqa: PLC0415

        close_session(self.server, run.pane, marker=pane_marker(self.workplace, run))

    def noticed_ends(self, world: World, *, at: float) -> Iterator[Fact]:
        """The sessions whose first process is gone, which nobody may have told us."""
        for run in world.runs.values():
            if run.is_pane_open and not _is_alive(run):
                yield from ended(run, code=None, at=at)

    @property
    def _scripts(self) -> Path:
        return self.workplace.folder / "scripts"

    def _command(
        self, settings: AgentSettings, order: StepOrder, run: Run, prompt_file: Path
    ) -> str:
        template = settings.interactive_template or settings.command_template or DEFAULT_TEMPLATE
        if run.session_used and settings.interactive_resume:
            template = settings.interactive_resume
        spec = agent_spec(self.workplace, settings, "", model=run.model)
        values: dict[str, Value] = {
            **template_values(spec, order),
            "Prompt": _argument(order.prompt, prompt_file),
            "PromptFile": str(prompt_file),
            "Session": order.session,
        }
        return expand(template, values, quote=shlex.quote)


def pane_marker(workplace: Workplace, run: Run) -> str:
    """Not one of the runner's, which ends with it: a terminal session goes on without crew."""
    return f"pane/{workplace.repo_id}/{run.id}"


def _argument(prompt: str, file: Path) -> str:
    """A prompt that no argument can hold is read from its file."""
    if len(prompt.encode(errors="surrogateescape")) <= LONGEST_ARGUMENT:
        return prompt
    return f"Read the file {file} and do what it says."


def _is_alive(run: Run) -> bool:
    found = find_process(run.pane_pid or 0)
    return found is not None and found.started == run.pane_started
