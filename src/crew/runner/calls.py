"""What an agent is told and given for one step: prompt, environment, limits."""

import logging
import os
from pathlib import Path

from crew.agents.adapter import AgentSpec
from crew.agents.first_run import answer_first_run
from crew.config.model import AgentSettings
from crew.config.prompts import prompt
from crew.domain.errors import NotFound
from crew.domain.message import Message
from crew.domain.progress import WHY
from crew.domain.quotation import headline, quoted
from crew.domain.run import NEW_SESSION, Ask, Run
from crew.domain.step import StepOrder
from crew.domain.task import Task
from crew.domain.task_item import TaskItem
from crew.domain.workflow import Role
from crew.runner.belongings import linked_folders
from crew.runner.outside import StepCall
from crew.runner.tokens import Tokens
from crew.runner.workplace import Workplace

log = logging.getLogger(__name__)


def agent_settings(workplace: Workplace, kind: str) -> AgentSettings:
    known = workplace.settings.agents.by_name
    if kind not in known:
        raise NotFound(
            f"no agent is configured as {kind!r}",
            hint=f"known: {', '.join(sorted(known))}; add [agents.{kind}] to .crew/config.toml",
        )
    return known[kind]


def answer_first_questions(workplace: Workplace, kind: str, worktree: Path) -> None:
    """What the agent's program asks when it is first started somewhere, nobody will be asked."""
    settings = agent_settings(workplace, kind)
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
        network=workplace.settings.sandbox.network,
    )


def step_order(workplace: Workplace, call: StepCall, item: TaskItem, held: str) -> StepOrder:
    """`held` is what the branch holds already, told to a session that does not know it."""
    run, task = call.run, call.task
    settings = workplace.settings.run
    return StepOrder(
        key=f"{workplace.repo_id}/{run.id}/{run.round}/{run.step}/{run.attempt}",
        agent=str(run.agent),
        kind=run.agent_kind,
        worktree=workplace.root / task.worktree,
        prompt=_prompt(workplace, call, item, held),
        session=run.session,
        resume=call.resume,
        log=workplace.task_log(task.id),
        done_word=run.done_word or workplace.rules.done_word,
        timeout_s=settings.step_timeout_s,
        idle_timeout_s=settings.idle_timeout_s,
        env={
            **step_environment(workplace, run, task, role=run.role or "worker"),
            "CREW_TOKEN": Tokens(workplace.folder).token(run),
        },
    )


def pane_order(
    workplace: Workplace, run: Run, task: Task, item: TaskItem, *, session: str
) -> StepOrder:
    """What goes into a terminal session; one that is resumed knows its task."""
    values = _values(workplace, run, task, item, "")
    words = "" if run.session_used and run.ask == Ask.CONTINUE else prompt("interactive", **values)
    settings = agent_settings(workplace, run.agent_kind)
    extra = (settings.prompt or workplace.settings.agents.worker_prompt, run.told)
    return StepOrder(
        key=f"{workplace.repo_id}/{run.id}/pane",
        agent=run.agent_kind,
        kind=run.agent_kind,
        worktree=workplace.root / task.worktree,
        prompt="\n".join(text for text in (words, *extra) if text),
        session=session,
        resume=run.session_used,
        log=workplace.task_log(task.id),
        done_word=workplace.rules.done_word,
        env=step_environment(workplace, run, task),
    )


def sent_back_words(workplace: Workplace, run: Run, task: Task) -> str:
    """What is typed into a terminal session whose done work came back."""
    item = TaskItem(id=task.id, title=task.title)
    values = _values(workplace, run, task, item, "")
    return prompt("sent_back", why=WHY[Ask(run.ask)], **values).strip()


def system_prompt(workplace: Workplace, call: StepCall, item: TaskItem) -> str:
    values = _values(workplace, call.run, call.task, item, "")
    own = agent_settings(workplace, call.run.agent_kind).system_prompt
    common = prompt("system", **values)
    parts = (common, _role_words(call.role) if call.role else "", own)
    return "\n".join(part for part in parts if part)


def _role_words(role: Role) -> str:
    """Who the agent is in a quest: what it owns, what it may signal, and how."""
    others = ", ".join(role.followups)
    return prompt(
        "role_system",
        role=role.name,
        owns=role.owns,
        instructions=role.instructions,
        signals=", ".join(role.signals),
        followups=f"Often asked to follow: {others}." if others else "",
    )


def _prompt(workplace: Workplace, call: StepCall, item: TaskItem, held: str) -> str:
    run = call.run
    settings = agent_settings(workplace, run.agent_kind)
    words = prompt(run.ask, **_values(workplace, run, call.task, item, held))
    extra = settings.prompt or workplace.settings.agents.worker_prompt
    starts = run.ask in NEW_SESSION
    said = (words, extra if starts else "", run.told, _messages(call.messages))
    return "\n".join(text for text in said if text)


def _messages(messages: tuple[Message, ...]) -> str:
    if not messages:
        return ""
    told = "\n\n".join(one.shown for one in messages)
    return f"There are messages for you:\n\n{told}\n"


def _values(
    workplace: Workplace, run: Run, task: Task, item: TaskItem, held: str
) -> dict[str, str]:
    return {
        "agent": str(run.agent),
        "task": task.id,
        "title": headline(item.title),
        "body": quoted(item.body),
        "branch": task.branch,
        "target": task.target,
        "worktree": str(workplace.root / task.worktree),
        "notes": _notes(run, held),
        "done_word": run.done_word or workplace.rules.done_word,
        "role": run.role,
    }


def _notes(run: Run, held: str) -> str:
    if run.ask == Ask.RESUMED:
        return held
    if run.ask in {Ask.PARTIAL, Ask.ROLE}:
        return f"{run.notes}\n\n{held}".strip()
    if run.ask == Ask.CONFLICT:
        files = "\n".join(f"  {path}" for path in run.merge_paths)
        return f"The commit to merge: {run.merge_commit}\nConflicts:\n{files}\n\n{run.notes}"
    return run.notes


def step_environment(
    workplace: Workplace, run: Run, task: Task, *, role: str = "worker"
) -> dict[str, str]:
    """The CREW_ variables of a step."""
    shared = workplace.settings.worktree
    return {
        "CREW_TASK_ID": task.id,
        "CREW_TASK_TITLE": task.title,
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
