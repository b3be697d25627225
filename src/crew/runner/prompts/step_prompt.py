"""The text of one step: its instructions, its prompt, and how the agent must end it."""

from crew.agents.adapter import remembers
from crew.config.prompts import prompt
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import headline, quoted
from crew.domain.rows.message import Message
from crew.domain.rows.run import NEW_SESSION, Ask, Run
from crew.domain.rows.task import Task
from crew.domain.rows.task_item import TaskItem
from crew.domain.rows.workflow import Role
from crew.domain.runs.complaints import WHY
from crew.runner.outside.outside import StepCall
from crew.runner.prompts.step_orders import agent_settings
from crew.workplace import Workplace

_BEGINNINGS = frozenset({Ask.FIRST, Ask.RESUMED, Ask.PARTIAL})
"""Asks that only the first step of a session gets; a later attempt of it knows them."""


@frozen
class Seen:
    """What a prompt reads from the disk; `held` is what the branch already contains."""

    item: TaskItem
    held: str = ""
    brief: str = ""


def own_words(common: str, own: str | None) -> str:
    """The prompt texts from the configuration: those of the role, then those of the agent kind."""
    return "\n".join(text for text in (common, own) if text)


def needs_the_task(workplace: Workplace, call: StepCall) -> bool:
    """Whether the prompt must contain the task: the session is new, or cannot be resumed."""
    adapter = agent_settings(workplace, call.run.agent_kind).adapter
    return ask_of(workplace, call) in NEW_SESSION or not call.resume or not remembers(adapter)


def ask_of(workplace: Workplace, call: StepCall) -> str:
    """Why the agent is called. A session that has begun its task is not told to begin again."""
    adapter = agent_settings(workplace, call.run.agent_kind).adapter
    has_begun = call.run.ask in _BEGINNINGS and call.resume and remembers(adapter)
    return Ask.CONTINUE if has_begun else call.run.ask


def instructions(workplace: Workplace, call: StepCall, seen: Seen) -> str:
    """The system prompt: crew's rules, those of the role, and the agent kind's own."""
    common = prompt("system", **_step_values(workplace, call, seen))
    own = agent_settings(workplace, call.run.agent_kind).system_prompt
    parts = (common, _role_words(call.role) if call.role else "", own)
    return "\n".join(part for part in parts if part)


def step_prompt(workplace: Workplace, call: StepCall, seen: Seen) -> str:
    run = call.run
    values = _step_values(workplace, call, seen)
    starts = needs_the_task(workplace, call)
    ask = ask_of(workplace, call)
    recap = prompt("recap", **values) if starts and ask not in NEW_SESSION else ""
    settings = agent_settings(workplace, run.agent_kind)
    own = own_words(workplace.settings.agents.worker_prompt, settings.prompt) if starts else ""
    said = (recap, prompt(ask, **values), own, run.told, message_words(call.messages))
    return "\n".join(text for text in said if text)


def terminal_prompt(workplace: Workplace, run: Run, task: Task, item: TaskItem) -> str:
    """The first prompt of a terminal; a resumed session already has its task."""
    settings = agent_settings(workplace, run.agent_kind)
    own = own_words(workplace.settings.agents.worker_prompt, settings.prompt)
    if run.session_used and run.ask == Ask.CONTINUE:
        return "\n".join(text for text in (own, run.told) if text)
    words = prompt("interactive", **_terminal_values(workplace, run, task, item))
    said = (words, settings.system_prompt, own, run.told)
    return "\n".join(text for text in said if text)


def sent_back_words(workplace: Workplace, run: Run, task: Task) -> str:
    """The text typed into a terminal: the answer to its question, or why work came back."""
    if run.ask == Ask.ANSWER:
        return run.notes
    values = _terminal_values(workplace, run, task, TaskItem(id=task.id, title=task.title))
    why = WHY.get(Ask(run.ask), "crew could not check it")
    return prompt("sent_back", why=why, **values).strip()


def _role_words(role: Role) -> str:
    """The agent's role in a quest: what it owns, and which signals it may send."""
    others = ", ".join(role.followups)
    return prompt(
        "role_system",
        role=role.name,
        owns=role.owns,
        instructions=role.instructions,
        signals=", ".join(role.signals),
        followups=f"Often asked to follow: {others}." if others else "",
    )


def message_words(messages: tuple[Message, ...]) -> str:
    if not messages:
        return ""
    told = "\n\n".join(one.shown for one in messages)
    return f"There are messages for you:\n\n{told}\n"


def _step_values(workplace: Workplace, call: StepCall, seen: Seen) -> dict[str, str]:
    values = _values(workplace, call.run, call.task, seen)
    return {**values, "ending": _ending(workplace, call)}


def _ending(workplace: Workplace, call: StepCall) -> str:
    """How the agent must end the step, always in the same words."""
    if call.role is not None:
        return prompt("ending_role", signals=", ".join(call.role.signals)).strip()
    done_word = call.run.done_word or workplace.rules.done_word
    return prompt("ending_task", done_word=done_word).strip()


def _terminal_values(workplace: Workplace, run: Run, task: Task, item: TaskItem) -> dict[str, str]:
    values = _values(workplace, run, task, Seen(item=item))
    return {**values, "ending": prompt("ending_terminal").strip()}


def _values(workplace: Workplace, run: Run, task: Task, seen: Seen) -> dict[str, str]:
    return {
        "agent": str(run.agent),
        "task": task.id,
        "title": headline(seen.item.title),
        "body": quoted(seen.item.body),
        "branch": task.branch,
        "target": task.target,
        "worktree": str(workplace.worktree_of(task)),
        "held": seen.held,
        "notes": _notes(run, seen.held),
        "brief": seen.brief,
        "role": run.role,
    }


def _notes(run: Run, held: str) -> str:
    if run.ask == Ask.RESUMED:
        return held
    if run.ask in {Ask.PARTIAL, Ask.ROLE}:
        return f"{run.notes}\n\n{held}".strip()
    if run.ask == Ask.CONFLICT:
        return _conflict(run)
    return run.notes


def _conflict(run: Run) -> str:
    """Both sides of a conflict, and whether the agent was asked to resolve it before."""
    again = f"This is request {run.merge_tries}: the commit to merge is not in your branch yet."
    parts = (run.merge_notes, run.notes, again if run.merge_tries > 1 else "")
    return "\n\n".join(part for part in parts if part)
