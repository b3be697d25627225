"""Terminal sessions on this machine: one tmux session a task, which anybody may attach to."""

import os
from dataclasses import dataclass

from crew.agents import tmux
from crew.agents.adapter import DEFAULT_TEMPLATE
from crew.agents.command import prompt_argument, template_values
from crew.agents.environment import agent_environment, prepare_files, shim_folder
from crew.agents.ownership import MARKER_VARIABLE, find_process
from crew.agents.session_script import write_session_script
from crew.agents.templates import Value, shell_script
from crew.agents.tmux import Tmux
from crew.config.model import AgentSettings
from crew.domain.pane import Opened
from crew.domain.run import Run
from crew.domain.step import StepOrder
from crew.domain.task import Task
from crew.domain.task_item import TaskItem
from crew.domain.world import World
from crew.runner.calls import agent_settings, agent_spec, pane_order
from crew.runner.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Panes:
    """Opens and closes the sessions of this repository's own tmux server."""

    workplace: Workplace

    @property
    def server(self) -> Tmux:
        return Tmux(folder=self.workplace.folder)

    def open(self, run: Run, task: Task, item: TaskItem, *, session: str) -> Opened:
        """Repeatable: a session that is there already is the one that is meant."""
        workplace = self.workplace
        settings = agent_settings(workplace, run.agent_kind)
        order = pane_order(workplace, run, task, item, session=session)
        prepare_files(order)
        script = write_session_script(
            workplace.folder,
            f"task-{task.id}",
            command=self._command(settings, order, run),
            prompt=order.prompt,
            end_command=(
                str(shim_folder(order) / "crew"),
                *("-C", str(workplace.root), "_pane-ended", run.id),
            ),
            log=workplace.logs / "crew.log",
        )
        marker = {MARKER_VARIABLE: pane_marker(workplace, run)}
        environment = agent_environment(order, extra=settings.env, caller=os.environ)
        live = tmux.open_session(
            self.server,
            run.pane,
            script=script,
            cwd=order.worktree,
            env={**environment, **marker},
            title=item.title,
            agent=run.agent_kind,
            log=workplace.task_log(task.id),
        )
        return Opened(pid=live.pid, started=live.started)

    def close(self, run: Run) -> None:
        tmux.close_session(self.server, run.pane, marker=pane_marker(self.workplace, run))

    def _command(self, settings: AgentSettings, order: StepOrder, run: Run) -> str:
        template = settings.interactive_template or settings.command_template or DEFAULT_TEMPLATE
        if run.session_used and settings.interactive_resume:
            template = settings.interactive_resume
        spec = agent_spec(self.workplace, settings, "", model=run.model)
        file = self.workplace.folder / "scripts" / f"task-{run.task}-prompt.txt"
        values: dict[str, Value] = {
            **template_values(spec, order),
            "Prompt": prompt_argument(order.prompt, file),
            "PromptFile": str(file),
        }
        return shell_script(template, values)


def ended_unnoticed(world: World) -> list[Run]:
    """The runs whose terminal session has no process any more, of which nobody told us."""
    return [
        run
        for run in world.runs.values()
        if run.is_pane_open and not run.leaving and not _is_alive(run)
    ]


def pane_marker(workplace: Workplace, run: Run) -> str:
    """Not one of the runner's, which ends with it: a terminal session goes on without crew."""
    return f"pane/{workplace.repo_id}/{run.id}"


def _is_alive(run: Run) -> bool:
    found = find_process(run.pane_pid or 0)
    return found is not None and found.started == run.pane_started
