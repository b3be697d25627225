"""Refuses the commands of people to agents, and reports the attempt in the inbox.

An agent's process is recognised by the marker of crew that it or one of its ancestors carries.
Inside a sandbox there is no `.crew/`, so nothing could be changed either way.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from crew.domain.kernel.errors import CrewError, NeedsLogin
from crew.domain.kernel.frozen import frozen
from crew.domain.requests import Request
from crew.domain.world import World
from crew.runner.requests.ask_crew import ask
from crew.runner.requests.ask_with_token import crew_in_sight, is_shut_in
from crew.runner.requests.door_client import ask_door, door_path
from crew.runner.requests.door_folder import REPORT_DOOR, REPORT_TOKEN
from crew.store.fact_log import load_world
from crew.system.processes.ownership import markers_above, variables_above
from crew.workplace import Workplace

REPORT_LIMIT_S = 5.0
DOOR, TOKEN, WORKTREE = "CREW_DOOR", "CREW_TOKEN", "CREW_WORKTREE"

_TERMINAL, _REVIEW, _CHANNEL, _MANAGER = "pane", "review", "channel", "manager"
_OF_CREW = frozenset({"notify", _MANAGER})
"""Processes with a marker that speak for a person: the notification, and the manager."""


@frozen
class AgentProcess:
    """The agent that this process belongs to; `run` and `task` are empty if it has none."""

    role: str
    run: str = ""
    task: str = ""


def agent_above(workplace: Workplace) -> AgentProcess | None:
    """The agent of this crew that started this process; None for a person."""
    for marker in markers_above():
        if found := _agent(marker, workplace):
            return found
    return None


def _agent(marker: str, workplace: Workplace) -> AgentProcess | None:
    """What a marker says: `<repo>/<run>/…`, `pane/<repo>/<run>` or `review/<repo>/<task>-…`.

    The marker of another crew says nothing here: an agent may build and test crew itself.
    """
    parts = marker.split("/")
    kind = parts.pop(0) if parts[0] in {_TERMINAL, _REVIEW} else ""
    if len(parts) < 2 or parts[0] != workplace.repo_id or parts[1] in _OF_CREW:
        return None
    if kind == _REVIEW:
        return AgentProcess(role="reviewer", task=parts[1].rsplit("-", 3)[0])
    if parts[1] in {"gate", "setup", _CHANNEL, _REVIEW}:
        return AgentProcess(role={_CHANNEL: "member", _REVIEW: "reviewer"}.get(parts[1], parts[1]))
    return _of_run(load_world(workplace.db), parts[1])


def _of_run(world: World, run: str) -> AgentProcess:
    found = world.runs.get(run)
    if found is None:
        return AgentProcess(role="worker", run=run)
    return AgentProcess(role=found.role or "worker", run=run, task=found.task)


def is_worktree_of_step(directory: Path) -> bool:
    """Whether this folder is in the worktree of the step that this process belongs to.

    The step's sandbox hides its crew: the worktree looks like a repository without one.
    """
    own = os.environ.get(WORKTREE) or variables_above(WORKTREE).get(WORKTREE, "")
    here = directory.resolve()
    top = next((at for at in (here, *here.parents) if (at / ".git").exists()), None)
    return bool(own) and top == Path(own).resolve()


def refuse_agents(directory: Path, act: str, *, own: str = "") -> None:
    """Raise if an agent's process calls this, unless `own` is its own task or run.

    The attempt is reported, to the runner that is up or by this process.
    """
    markers = markers_above()
    if not door_path() and not markers:
        return
    if is_shut_in(directory):
        if own and own == os.environ.get("CREW_TASK_ID"):
            return  # the door checks the token
        _report_through_door(act, os.environ)
        raise for_people(act)
    folder = crew_in_sight(directory)
    if folder is None:
        if not all(_OF_CREW & set(one.split("/")) for one in markers):
            # A sandbox hides the crew, and the agent has dropped its door.
            _report_through_door(act, _door_above())
            raise for_people(act)
        return
    workplace = Workplace(root=folder.parent)
    with contextlib.closing(workplace.db):
        agent = agent_above(workplace)
        if agent is None or (own and own in {agent.task, agent.run}):
            return
        _report(workplace, agent, act)
    raise for_people(act)


def _report(workplace: Workplace, agent: AgentProcess, act: str) -> None:
    args = {
        "act": act,
        "role": agent.role,
        "task": agent.task,
        "run": agent.run,
        "context": f"crew refused it; process {os.getpid()} in {Path.cwd()}",
    }
    with contextlib.suppress(CrewError, OSError):  # the refusal does not depend on its report
        ask(workplace, Request(verb="suspect", args=args), timeout_s=REPORT_LIMIT_S)


def _door_above() -> dict[str, str]:
    """The door and the token of the step or gate that this process belongs to."""
    found = variables_above(REPORT_DOOR, REPORT_TOKEN)
    if not found:
        return variables_above(DOOR, TOKEN)
    return {DOOR: found[REPORT_DOOR], TOKEN: found[REPORT_TOKEN]}


def _report_through_door(act: str, environ: Mapping[str, str]) -> None:
    args = {"token": environ.get(TOKEN, ""), "act": act}
    with contextlib.suppress(CrewError, OSError):
        ask_door(environ.get(DOOR, ""), "refused", args, timeout_s=REPORT_LIMIT_S)


def for_people(act: str) -> NeedsLogin:
    """The refusal of something that only a person may do."""
    may = "signal, show its own task and comment on it, hand in its plan, post in its channel"
    return NeedsLogin(
        f"{act} is for people, and this is an agent's step",
        hint=f"a step may {may}; ask a person: crew signal needs-user-input --question …",
        code="for_people",
    )
