"""Opens and ends the terminals of tasks: one tmux session a task, to which people can attach."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from crew.agents.adapter import DEFAULT_TEMPLATE, StepOrder
from crew.agents.command import prompt_argument, template_values
from crew.agents.environment import agent_environment, prepare_files, shim_folder
from crew.agents.terminal import tmux
from crew.agents.terminal.dialog_keys import choose, enter_text
from crew.agents.terminal.terminal_script import (
    session_prompt,
    write_session_prompt,
    write_session_script,
)
from crew.agents.terminal.tmux import Tmux
from crew.config.model import AgentSettings
from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.templates import Value, shell_script
from crew.domain.rows.message import Message
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.terminal import Terminal
from crew.domain.terminals.dialogs import TerminalInput
from crew.domain.terminals.terminal_outcomes import Opened
from crew.runner.prompts.step_orders import (
    agent_settings,
    agent_spec,
    terminal_order,
    terminal_variables,
)
from crew.runner.prompts.step_prompt import sent_back_words, terminal_prompt
from crew.runner.requests.door_folder import make_door_folder
from crew.runner.sandbox.confinement import for_step, limits_of
from crew.runner.terminals.terminal_input import read_terminal, terminal_marker
from crew.store.runner_lock import find_runner
from crew.system.processes.ownership import MARKER_VARIABLE
from crew.system.processes.process import load_wrapper
from crew.system.processes.start_command import Wrapper, terminal_command
from crew.system.sandbox.allowed import Allowed, Sandbox
from crew.trusted_config import unapproved_project_files
from crew.workplace import Workplace


@frozen
class TerminalOrder:
    """What one terminal shows; `script` is the name of its files."""

    name: str
    script: str
    title: str
    order: StepOrder
    marker: str
    model: str = ""
    when_ended: Sequence[str] = ("true",)


def open_terminal(workplace: Workplace, terminal: TerminalOrder) -> Opened:
    """Open a terminal; one that is open already is kept, with its script."""
    server = Tmux(folder=workplace.folder)
    if there := tmux.find_session(server, terminal.name):
        return Opened(pid=there.pid, started=there.started)
    order = terminal.order
    settings = agent_settings(workplace, order.kind)
    prepare_files(order)
    prepared = terminal_variables(workplace, order)
    script = write_session_script(
        workplace.folder,
        terminal.script,
        command=_command(workplace, terminal),
        prompt=order.prompt,
        end_command=terminal.when_ended,
        log=workplace.logs / "crew.log",
    )
    environment = agent_environment(order, extra=settings.env, caller=os.environ)
    live = tmux.open_session(
        server,
        terminal.name,
        script=script,
        cwd=order.worktree,
        env={**environment, **prepared, MARKER_VARIABLE: terminal.marker},
        title=terminal.title,
        agent=order.kind,
        log=order.log,
    )
    return Opened(pid=live.pid, started=live.started)


def _command(workplace: Workplace, terminal: TerminalOrder) -> str:
    order = terminal.order
    settings = agent_settings(workplace, order.kind)
    template = settings.interactive_template or settings.command_template or DEFAULT_TEMPLATE
    if order.resume and settings.interactive_resume:
        template = settings.interactive_resume
    spec = agent_spec(workplace, settings, "", model=terminal.model)
    file = write_session_prompt(workplace.folder, terminal.script, order.prompt)
    values: dict[str, Value] = {
        **template_values(spec, order),
        "Prompt": prompt_argument(order.prompt, file),
        "PromptFile": str(file),
    }
    command = shell_script(template, values)
    mode: Sandbox = workplace.settings.sandbox.mode  # type: ignore[assignment]
    mode = "off" if order.allowed.may_write_anywhere else mode
    wrapper = load_wrapper(mode, order.allowed)
    if wrapper == Wrapper():
        return command
    return terminal_command(command, order.allowed, wrapper=wrapper, cwd=order.worktree)


@dataclass(frozen=True, slots=True)
class TaskTerminals:
    """The terminals of tasks."""

    workplace: Workplace

    def open(
        self, terminal: Terminal, run: Run, task: Task, item: TaskItem, *, session: str
    ) -> Opened:
        words = terminal_prompt(self.workplace, run, task, item)
        order = terminal_order(self.workplace, terminal, run, task, words, session=session)
        settings = agent_settings(self.workplace, order.kind)
        script = f"task-{task.id}"
        make_door_folder(self.workplace)  # for the door of the next runner
        order = replace(
            order,
            allowed=self._allowed(order, settings, script=script),
            trusts_project=not unapproved_project_files(
                self.workplace.root, order.worktree, settings.adapter
            ),
        )
        crew, number = str(shim_folder(order) / "crew"), str(terminal.number)
        wanted = TerminalOrder(
            name=terminal.name,
            script=script,
            title=item.title,
            order=order,
            marker=terminal_marker(self.workplace, run.id),
            model=run.model,
            when_ended=(crew, "-C", str(self.workplace.root), "_pane-ended", run.id, number),
        )
        return open_terminal(self.workplace, wanted)

    def _allowed(self, order: StepOrder, settings: AgentSettings, *, script: str) -> Allowed:
        """What the agent may reach. In a sandbox it reaches crew only through a runner's door.

        So that `crew complete` works in a terminal without a runner, it is not confined there.
        """
        workplace = self.workplace
        mode, network = workplace.settings.sandbox.mode, workplace.settings.sandbox.network
        if find_runner(workplace.lock_file) is not None or mode == "off":
            prompt = session_prompt(workplace.folder, script)
            return for_step(workplace, order, settings, terminal_prompt=prompt)
        if mode != "auto" or network is not True:
            without = 'mode = "auto"' if mode != "auto" else "network = true"
            raise Conflict(
                "a terminal can be confined only while a runner is up",
                hint=f"start one with `crew run`, or set [sandbox] {without}",
                code="no_runner_for_terminal",
            )
        return replace(limits_of(workplace), has_terminal=True)

    def type_into(
        self, terminal: Terminal, run: Run, task: Task, messages: tuple[Message, ...]
    ) -> TerminalInput | None:
        """Type at a prompt; a repeat types it again, which is better than losing it."""
        seen = read_terminal(self.workplace, terminal, run)
        if seen is None or not seen.takes_text:
            return seen
        back = [sent_back_words(self.workplace, run, task)] if terminal.untyped else []
        text = "\n\n".join([*back, *(one.typed for one in messages)])
        dialog = enter_text(Tmux(folder=self.workplace.folder), terminal.name, text)
        return seen if dialog is None else TerminalInput(dialog=dialog)

    def choose(self, terminal: Terminal, choice: str) -> None:
        choose(Tmux(folder=self.workplace.folder), terminal.name, choice)

    def close(self, terminal: Terminal) -> None:
        server = Tmux(folder=self.workplace.folder)
        tmux.close_session(
            server, terminal.name, marker=terminal_marker(self.workplace, terminal.id)
        )
