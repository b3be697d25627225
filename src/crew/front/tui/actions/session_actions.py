"""The actions on the session of a task: start, stop, attach, exec, kill, retry, send."""

import asyncio
from typing import TYPE_CHECKING

from crew.config.agent_programs import missing_program
from crew.config.model import AgentSettings, AgentsSettings
from crew.domain.rows.agent import Agent, AgentState
from crew.domain.rows.task import TaskState
from crew.front.tui.actions.background_thread import in_background
from crew.front.tui.dialogs.choice import Choice
from crew.front.tui.widgets.safe_text import safe
from crew.trusted_config import load_settings

if TYPE_CHECKING:
    from crew.domain.rows.terminal import Terminal
    from crew.front.tui.view_app import CrewView

RUNNER = "--headless"

OPENING_LOOK_S, OPENING_LOOKS = 0.1, 100


async def start(view: "CrewView") -> None:
    """Offer the agent kinds, the default one first, and start the task with the chosen one."""
    task = view.chosen_task
    settings = await agents_of(view)
    wanted = view.picture.items[task].agent if task in view.picture.items else None
    choices = kind_choices(settings, wanted or settings.worker_default)
    words = "without a terminal; the runner works on it"
    choices.append(Choice(value=RUNNER, title="hand it to the runner", about=words))
    chosen = await view.choose(f"Start task {task}: {view.picture.title_of(task)}", choices)
    if chosen is None:
        return
    args = (RUNNER, "--", task) if chosen == RUNNER else ("--", task, chosen)
    await view.command("start", *args, done=f"task {task} is started")


async def agents_of(view: "CrewView") -> AgentsSettings:
    return (await in_background(load_settings, view.root)).agents


def kind_choices(settings: AgentsSettings, default: str) -> list[Choice]:
    """The kinds that can work on a task, with model and description."""
    workers = [one for one in settings.by_name.values() if one.role == "worker"]
    workers.sort(key=lambda one: one.name != default)
    return [Choice(value=one.name, title=_name(one, default), about=_about(one)) for one in workers]


def _name(kind: AgentSettings, default: str) -> str:
    return f"{kind.name} (default)" if kind.name == default else kind.name


def _about(kind: AgentSettings) -> str:
    missing = missing_program(kind)
    absent = f"({missing} is not installed)" if missing else ""
    return "  ".join(filter(None, (kind.default_model, kind.description, absent)))


async def stop(view: "CrewView") -> None:
    task = view.chosen_task
    if await view.confirm(f"Stop task {task}? Its step ends; what it did is kept."):
        await view.command("stop", "--", task, done=f"task {task} is stopped")


async def attach(view: "CrewView") -> None:
    """Show the terminal of the task; an agent without one can be moved to a terminal first."""
    task = view.chosen_task
    await _opened(view, task)
    if not has_terminal(view, task) and view.picture.status_of(task) == TaskState.IN_PROGRESS:
        question = f"Task {task} runs without a terminal. Move it to one, in the same session?"
        if not await view.confirm(question):
            return
        reply = await view.command("start", "--", task, done=f"task {task} is at a terminal")
        if reply.is_refused:
            return
    view.in_terminal("attach", "--", task)


async def _opened(view: "CrewView", task: str) -> None:
    """Wait for a terminal that is about to open: the task was started a moment ago."""
    for _ in range(OPENING_LOOKS):
        if _terminal(view, task) is None or has_terminal(view, task):
            return
        await asyncio.sleep(OPENING_LOOK_S)


def has_terminal(view: "CrewView", task: str) -> bool:
    terminal = _terminal(view, task)
    return terminal is not None and terminal.has_process


def _terminal(view: "CrewView", task: str) -> "Terminal | None":
    row = view.picture.world.tasks.get(task)
    return view.picture.world.terminal_of((row.run if row else None) or "")


async def execute(view: "CrewView") -> None:
    """Run a command in the worktree of the task, in the person's terminal."""
    task = view.chosen_task
    words = await view.write(f"Run in the worktree of task {task}", text=view.last_exec)
    if words and words.strip():
        view.last_exec = words
        view.in_terminal("exec", task, "--", "sh", "-c", words, waits=True)


async def kill(view: "CrewView") -> None:
    agent = agent_here(view)
    if agent is None:
        view.notify("no agent works on this task; S stops a terminal", severity="warning")
        return
    about = f", which works on task {safe(agent.task)}" if agent.task else ""
    if await view.confirm(f"End the step of agent {agent.id}{about}? Its task becomes todo."):
        await view.command("kill", "--", agent.id, done=f"agent {agent.id} is idle")


async def retry(view: "CrewView") -> None:
    """Retry the stuck agent of the task, or the failed task itself."""
    agent = agent_here(view)
    is_stuck = agent is not None and agent.state == AgentState.STUCK
    subject = agent.id if agent is not None and is_stuck else view.chosen_task
    if subject:
        await view.command("retry", "--", subject, done=f"{subject} is tried again")
    else:
        view.notify("nothing to retry here", severity="warning")


def agent_here(view: "CrewView") -> Agent | None:
    """The agent under the cursor, or the one that has the chosen task."""
    named = view.page.chosen_agent()
    agents = view.picture.world.agents
    if named:
        return agents.get(named)
    task = view.chosen_task
    return next((one for one in agents.values() if task and one.task == task), None)


async def send(view: "CrewView") -> None:
    task = view.chosen_task
    words = await view.write(f"Message to the agent of task {task}", several_lines=True)
    if words and words.strip():
        await view.command("send", "--", task, "-", stdin=words, done="the message is sent")
