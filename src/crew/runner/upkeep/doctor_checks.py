"""The checks of `crew doctor`; each finding names its fix."""

import os
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from crew.config.agent_programs import missing_program
from crew.domain.kernel.errors import CrewError
from crew.domain.upkeep.findings import Finding
from crew.runner.upkeep.state_checks import STATE_CHECKS
from crew.runner.views.proposal_views import key_names
from crew.store.fact_log import load_world
from crew.system.processes.allowed_environment import allowed_environment
from crew.trusted_config import proposals

if TYPE_CHECKING:
    from crew.agents.errors.login_check import Login
    from crew.config.model import AgentSettings
    from crew.workplace import Workplace

WITH_LOGIN = frozenset({"claude", "codex", "codex-exec", "opencode", "gemini", "acp"})
"""Adapters whose programs have logins; a command or a script of a person need not have one."""

OLDEST_GIT = (2, 38)


def examine(load_workplace: Callable[[], "Workplace"], *, repair: bool) -> Iterator[Finding]:
    """Run all checks, in an order in which later ones may rely on earlier ones."""
    yield from _guarded("git", git_version)
    try:
        workplace = load_workplace()
        workplace.settings  # noqa: B018 - reads the configuration
    except CrewError as error:
        yield Finding(check="config", message=error.message, fix=error.hint, is_wrong=True)
        return
    yield Finding(check="config", message=f"the configuration of {workplace.root} is sound")
    if waiting := proposals(workplace.root):
        message = f"a commit changed {key_names(waiting)}, and no person has approved it"
        yield Finding(check="config", message=message, fix="crew trust")
    yield from _guarded("tmux", terminal)
    yield from _guarded("sandbox", lambda: sandbox(workplace))
    yield from submodules(workplace)
    yield from _guarded("git-lfs", lambda: large_files(workplace))
    yield from _guarded("readiness", lambda: readiness(workplace))
    yield from _guarded("signing", lambda: signing(workplace))
    checks = dict(STATE_CHECKS)
    database = checks.pop("database")
    yield from _guarded("database", lambda: database(workplace, repair))
    yield from _guarded("agents", lambda: agents(workplace))
    for name, look in checks.items():
        yield from _guarded(name, lambda look=look: look(workplace, repair))  # type: ignore[misc]


def _guarded(check: str, look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Run a check; if it fails itself, that is a finding, and the others still run."""
    try:
        yield from look()
    except CrewError as error:
        yield Finding(check=check, message=error.message, fix=error.hint, is_wrong=True)


def git_version() -> Iterator[Finding]:
    from pathlib import Path  # noqa: PLC0415

    from crew.git.git_command import git  # noqa: PLC0415

    words = git(Path("/"), "--version")
    match = re.search(r"(\d+)\.(\d+)", words)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    if version < OLDEST_GIT:
        yield Finding(
            check="git",
            message=f"{words} is too old: merging in memory needs 2.38",
            fix="install a newer git",
            is_wrong=True,
        )
    else:
        yield Finding(check="git", message=words)


def terminal() -> Iterator[Finding]:
    """Check tmux; a missing one is only advice, since just tasks at a terminal need it."""
    from crew.agents.terminal.tmux import checked_version, load_program  # noqa: PLC0415

    try:
        yield Finding(check="tmux", message=checked_version(load_program()))
    except CrewError as error:
        yield Finding(
            check="tmux", message=f"{error.message}: no `crew start`, no `attach`", fix=error.hint
        )


def sandbox(workplace: "Workplace") -> Iterator[Finding]:
    from crew.runner.sandbox.level import sandbox_finding  # noqa: PLC0415

    yield sandbox_finding(workplace)


def submodules(workplace: "Workplace") -> Iterator[Finding]:
    """Advice for submodules that nobody has cloned here: they are empty in tasks and gates."""
    for name in workplace.empty_submodules:
        yield Finding(
            check="submodules",
            message=f"the folder of the submodule {name} is empty in tasks and gates",
            fix="git submodule update --init --recursive",
        )


def large_files(workplace: "Workplace") -> Iterator[Finding]:
    """Check that tasks and gates can have the files of git-lfs, in a repository with some."""
    from crew.git import lfs  # noqa: PLC0415 - not for a start of crew
    from crew.git.repository import commit_of  # noqa: PLC0415

    repo = workplace.repo
    commit = commit_of(repo, f"refs/heads/{workplace.target}") if lfs.may_name(repo) else None
    if commit is None or not lfs.names(repo, commit):
        return
    if problem := lfs.unready(repo):
        message = f"files are in git-lfs, and {problem.words}: agents and gates get pointers"
        yield Finding(check="git-lfs", message=message, fix=problem.fix, is_wrong=True)
    elif paths := lfs.missing_in(repo, commit):
        missing = lfs.content_missing(repo.common_dir, paths, commit=workplace.target)
        yield Finding(check="git-lfs", message=missing.message, fix=missing.hint, is_wrong=True)
    else:
        yield Finding(check="git-lfs", message="the contents of all files of git-lfs are here")


def readiness(workplace: "Workplace") -> Iterator[Finding]:
    """Whether worktrees can be made, and whether agents can commit in them."""
    from crew.runner.readiness import problems  # noqa: PLC0415 - for the doctor only

    found = list(problems(workplace))
    for one in found:
        yield Finding(check="readiness", message=one.message, fix=one.hint, is_wrong=True)
    if not found:
        message = f"agents can commit, in worktrees in {workplace.worktrees}"
        yield Finding(check="readiness", message=message)


def signing(workplace: "Workplace") -> Iterator[Finding]:
    """Whether the key works that signs crew's merges, or else that nothing is signed."""
    from crew.git.merges.signing import check_signer  # noqa: PLC0415 - for the doctor only

    if workplace.settings.merge.sign:
        message = f"your key signs crew's merges ({check_signer(workplace.repo)})"
        yield Finding(check="signing", message=message)
    elif signs_nothing(workplace):
        yield Finding(check="signing", message=UNSIGNED, fix=SIGN)


def signs_nothing(workplace: "Workplace") -> bool:
    """Whether the person's git signs commits, and crew and its agents do not."""
    from crew.git.merges.signing import wants_signatures  # noqa: PLC0415 - for two commands only

    return not workplace.settings.merge.sign and wants_signatures(workplace.repo)


UNSIGNED = (
    "git signs your commits; agents commit unsigned, since the sandbox does not have your key"
)
SIGN = "`crew config set merge.sign true` lets your key sign crew's own merges"


def agents(workplace: "Workplace") -> Iterator[Finding]:
    """Check the agent kinds in use: the default worker, those of agents, and the reviewers."""
    settings, world = workplace.settings.agents, load_world(workplace.db)
    used = {agent.agent_kind for agent in world.crew.values()}
    logins: dict[tuple[object, ...], Login] = {}
    for kind in sorted({settings.worker_default, *used, *workplace.rules.reviewers}):
        known = settings.by_name.get(kind)
        missing = missing_program(known) if known else None
        if known is None or missing:
            yield Finding(
                check="agents",
                message=f"{missing or kind} is not {'installed' if missing else 'configured'}, "
                f"and the agent {kind} needs it",
                fix=f"install it, or set [agents.{kind}] in .crew/config.toml",
                is_wrong=True,
            )
        else:
            yield _login_finding(workplace, known, logins)
    for outage in world.outages.values():
        if outage.is_open:
            message = f"the agent {outage.id} is paused: {outage.reason}"
            yield Finding(check="agents", message=message, fix=outage.remedy, is_wrong=True)


def _login_finding(
    workplace: "Workplace", agent: "AgentSettings", logins: "dict[tuple[object, ...], Login]"
) -> Finding:
    """The login of an installed agent; kinds with the same program and settings share one check."""
    from crew.agents.errors.login_check import check_login  # noqa: PLC0415 - for the doctor only
    from crew.agents.errors.ways_out import login  # noqa: PLC0415
    from crew.runner.prompts.step_orders import agent_spec  # noqa: PLC0415

    spec = agent_spec(workplace, agent, "")
    key = (spec.adapter, spec.command, spec.args, tuple(sorted(spec.env.items())))
    if key not in logins:
        logins[key] = check_login(spec, {**allowed_environment(os.environ), **spec.env})
    found = logins[key]
    if found.is_there is False:
        message = f"the agent {agent.name} is installed, but {found.words}"
        return Finding(check="agents", message=message, fix=login(spec), is_wrong=True)
    words = f" and {found.words}" if found.is_there else f"; {found.words}"
    words = words if agent.adapter in WITH_LOGIN else ""
    return Finding(check="agents", message=f"the agent {agent.name} is installed{words}")
