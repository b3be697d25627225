"""Builds the order for one step or terminal: the agent's program, environment and limits."""

import logging
import os
from pathlib import Path

from crew.agents.adapter import AgentSpec, StepOrder
from crew.agents.claude.claude_home import claude_variables
from crew.agents.first_run import answer_first_run
from crew.agents.gemini.gemini_home import gemini_variables
from crew.config.model import AgentSettings
from crew.config.price_list import prices_for
from crew.domain.kernel.errors import NotFound
from crew.domain.rows.run import Run
from crew.domain.rows.task import Task
from crew.domain.rows.terminal import Terminal
from crew.runner.outside.outside import StepCall
from crew.runner.outside.worktree_files import linked_folders
from crew.runner.prompts.mcp_connection import connection, token_variables
from crew.runner.requests.tokens import Tokens
from crew.workplace import Workplace

log = logging.getLogger(__name__)

_LONGEST_TITLE = 2000
"""Linux starts no program with a variable of more than 128 KiB."""


def agent_settings(workplace: Workplace, kind: str) -> AgentSettings:
    known = workplace.settings.agents.by_name
    if kind not in known:
        raise NotFound(
            f"no agent is configured as {kind!r}",
            hint=f"known: {', '.join(sorted(known))}; add [agents.{kind}] to .crew/config.toml",
        )
    return known[kind]


_HAVE_OWN_HOMES = frozenset({"claude", "gemini"})


def terminal_variables(workplace: Workplace, order: StepOrder) -> dict[str, str]:
    """Prepare the first start of a terminal's program; returns the variables that this needs."""
    settings = agent_settings(workplace, order.kind)
    environ = {**os.environ, **settings.env}
    try:
        if settings.adapter == "gemini":
            return gemini_variables(order, environ)
        if settings.adapter == "claude":
            return claude_variables(order, environ, settings.first_run)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.warning("%s: its settings cannot be read: %s", order.kind, error)
    answer_first_questions(workplace, order.kind, order.worktree)
    return {}


def answer_first_questions(workplace: Workplace, kind: str, worktree: Path) -> None:
    """Answer in advance what the agent's program asks at its first start in a folder.

    Claude Code and Gemini CLI ask nothing in a headless step, and have homes of the task's own.
    """
    settings = agent_settings(workplace, kind)
    if settings.adapter in _HAVE_OWN_HOMES:
        return
    environ = {**os.environ, **settings.env}
    home = Path(environ.get("HOME") or Path.home())
    for problem in answer_first_run(
        settings.first_run, worktree=worktree, home=home, environ=environ
    ):
        log.warning("%s: %s", kind, problem)


def agent_spec(
    workplace: Workplace, settings: AgentSettings, system_prompt: str, *, model: str = ""
) -> AgentSpec:
    defaults = AgentSpec(name=settings.name)
    return AgentSpec(
        name=settings.name,
        adapter=settings.adapter,  # type: ignore[arg-type]
        command=settings.command or "",
        command_template=settings.command_template or defaults.command_template,
        prompt_via=settings.prompt_via,  # type: ignore[arg-type]
        model=model or settings.default_model or "",
        args=settings.args,
        env=settings.env,
        system_prompt=system_prompt,
        script=settings.script or "",
        sandbox=workplace.settings.sandbox.mode,  # type: ignore[arg-type]
        prices=prices_for(settings),
    )


def step_order(workplace: Workplace, call: StepCall, prompt: str) -> StepOrder:
    run, task = call.run, call.task
    settings = workplace.settings.run
    return StepOrder(
        key=f"{workplace.repo_id}/{run.id}/{run.round}/{run.step}/{run.attempt}",
        agent=str(run.agent),
        kind=run.agent_kind,
        worktree=workplace.worktree_of(task),
        prompt=prompt,
        session=run.session,
        resume=call.resume,
        log=workplace.task_log(task.id),
        done_word=run.done_word or workplace.rules.done_word,
        timeout_s=settings.step_timeout_s,
        idle_timeout_s=settings.idle_timeout_s,
        env={
            **step_environment(workplace, run, task, role=run.role or "worker"),
            **token_variables(workplace, Tokens(workplace.folder).token(run)),
        },
    )


def terminal_order(
    workplace: Workplace, terminal: Terminal, run: Run, task: Task, prompt: str, *, session: str
) -> StepOrder:
    """The order that starts a run's terminal."""
    return StepOrder(
        key=f"{workplace.repo_id}/{run.id}/pane",
        agent=run.agent_kind,
        kind=run.agent_kind,
        worktree=workplace.worktree_of(task),
        prompt=prompt,
        session=session,
        resume=run.session_used,
        log=workplace.task_log(task.id),
        done_word=workplace.rules.done_word,
        env={
            **step_environment(workplace, run, task),
            **connection(workplace, Tokens(workplace.folder).terminal_token(terminal)),
        },
    )


def step_environment(
    workplace: Workplace, run: Run, task: Task, *, role: str = "worker"
) -> dict[str, str]:
    """The CREW_ variables of a step."""
    shared = workplace.settings.worktree
    return {
        "CREW_TASK_ID": task.id,
        "CREW_TASK_TITLE": task.title[:_LONGEST_TITLE],
        "CREW_RUN_ID": run.id,
        "CREW_ROUND": str(run.round),
        "CREW_STEP": str(run.step),
        "CREW_ROLE": role,
        "CREW_REPO": str(workplace.root),
        "CREW_GIT_DIR": str(workplace.repo.common_dir),
        "CREW_LINKED": "\n".join(map(str, linked_folders(workplace.root, shared))),
        "CREW_BRANCH": task.branch,
        "CREW_BASE_BRANCH": task.target,
        "CREW_REASON": run.ask,
        "CREW_MERGE_COMMIT": run.merge_commit,
        "CREW_STATE_DIR": str(workplace.folder / "sessions"),
    }
