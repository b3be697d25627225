"""The manifest of a run: a file that other programs read, with its own names for the states."""

from pathlib import Path
from typing import Any

from crew.domain.kernel.text import as_json
from crew.domain.rows.run import PERSISTED, Run, RunState
from crew.domain.world import World
from crew.runner.views.row_views import moment
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.private_files import FILE_MODE, make_private_folder
from crew.workplace import Workplace


def manifest(workplace: Workplace, world: World, run: Run, *, at: float) -> dict[str, Any]:
    task = world.tasks[run.task]
    reviewers = workplace.rules.reviewers if run.reviewers is None else run.reviewers
    return {
        "id": run.id,
        "task": run.task,
        "repo_path": str(workplace.root),
        "prompt": task.title,
        "state": PERSISTED[RunState(run.state)],
        "primary_agent": run.agent_kind,
        "reviewers": list(reviewers),
        "max_iterations": run.max_rounds,
        "current_iteration": run.round,
        "steps": run.steps,
        "done_signal": run.done_word or workplace.rules.done_word,
        "proof_command": run.proof or None,
        "session_id": run.session or None,
        "worktree_path": task.worktree or None,
        "history": [PERSISTED[RunState(state)] for state in run.history],
        "created_at": moment(run.started_at),
        "updated_at": moment(at),
        "completed_at": moment(run.ended_at),
        "error": run.error or None,
    }


def manifest_file(workplace: Workplace, run: str) -> Path:
    return workplace.folder / "runs" / run / "manifest.json"


@effect("runner.write_manifest")
def write_manifest(file: Path, document: dict[str, Any]) -> None:
    make_private_folder(file.parent)
    write_file(file, f"{as_json(document, indent=2)}\n".encode(), mode=FILE_MODE)
