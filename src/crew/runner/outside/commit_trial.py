"""Asks git what it says to a commit of all that a task left uncommitted, without an effect.

The commit is made in a copy of the task's own repository, in the sandbox, which shows the worktree
read-only. So the hooks of the repository and the settings of the agent have their say.
"""

import os

from crew.agents.environment import GIT_VARIABLES
from crew.domain.kernel.text import plain, printable
from crew.domain.rows.task import Task
from crew.git.task_repository.agent_refs import agent_git_of
from crew.git.worktrees import worktree_admin
from crew.runner.outside.setup_commands import note
from crew.runner.outside.worktree_setup import worker_settings
from crew.runner.sandbox.confinement import for_command
from crew.system.processes.allowed_environment import allowed_environment
from crew.system.processes.process import ProcessOrder, run_process
from crew.workplace import Workplace

_LIMIT_S = 60.0
_KEPT = 2_000
_SCRIPT = """\
exec 2>&1
trial=$(mktemp -d) || exit 0
for entry in "$1"/*; do
    case ${entry##*/} in
        objects|logs) ;;
        *) cp -R "$entry" "$trial/" || exit 0 ;;
    esac
done
mkdir -p "$trial/objects/info" || exit 0
printf '%s\\n' "$1/objects" >"$trial/objects/info/alternates"
echo "$trial"
GIT_DIR=$trial GIT_WORK_TREE=$PWD
export GIT_DIR GIT_WORK_TREE
git add -A && git commit -q -m 'what does git say'
"""


async def refusal_of_commit(workplace: Workplace, task: Task) -> str:
    """The words with which git refuses the commit; empty if it does not, or nothing confines it."""
    path = workplace.worktree_of(task)
    git_dir = worktree_admin.git_dir_for(workplace.repo, path)
    if git_dir is None or not (workplace.repo.is_confined and worktree_admin.is_own(git_dir)):
        return ""
    argv = ("sh", "-c", _SCRIPT, "sh", str(agent_git_of(git_dir)))
    agent = worker_settings(workplace, task)
    log = workplace.task_log(task.id)
    note(log, "=== crew tries what git says to a commit ===")
    said = bytearray()
    end = await run_process(
        ProcessOrder(
            argv=argv,
            cwd=path,
            env={**allowed_environment(os.environ), **GIT_VARIABLES, **agent.env},
            log=log,
            marker=f"{workplace.repo_id}/commit/{task.id}",
            timeout_s=_LIMIT_S,
            idle_timeout_s=_LIMIT_S + 1,
            sandbox=workplace.settings.sandbox.mode,  # type: ignore[arg-type]
            allowed=for_command(workplace, (), path, may_write=False),
        ),
        on_started=lambda _pid: None,
        on_output=said.extend,
    )
    if end.reason != "exited" or end.code == 0:
        return ""
    place, _, words = plain(printable(bytes(said))).partition("\n")
    return words.replace(place, str(argv[-1])).strip()[-_KEPT:]
