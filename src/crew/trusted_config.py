"""Loads the configuration of a repository; values from commits need a person's approval."""

import functools
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crew.config.layers.layer_files import layer_files
from crew.config.layers.layers import load_layers, merged_settings, read_file, read_layer
from crew.config.reserved_keys import KeyPath
from crew.config.trust.approvals import (
    NAME,
    NOTHING,
    Approval,
    content_hash,
    keep_approvals,
    load_approvals,
)
from crew.config.trust.project_settings import (
    ALL_PROJECT_SETTINGS,
    project_contents,
    project_settings,
    unapproved_files,
)
from crew.config.trust.proposals import (
    Judged,
    Proposal,
    Tracking,
    approval_of,
    judged,
    with_key,
)
from crew.config.validate_config import Layer
from crew.domain.kernel.errors import UsageError

if TYPE_CHECKING:
    from crew.config.model import Settings
    from crew.domain.rows.workflow import Workflow

FOLDER = ".crew"
NEW_WORKFLOW = "a workflow that no person has approved as it is"
NEW_PROJECT_SETTINGS = "with this file an agent's program starts others; it is off until approved"


def load_settings(root: Path, environ: Mapping[str, str] | None = None) -> "Settings":
    """The settings in force. An error names the file, line and key, or the variable."""
    return merged_settings(trusted_layers(root, environ))


def trusted_layers(root: Path, environ: Mapping[str, str] | None = None) -> tuple[Layer, ...]:
    """All layers in the order in which they are merged, without values that wait for approval."""
    layers = {name: one.layer for name, one in _judge_all(root).items()}
    return load_layers(root, environ, judged=layers)


def proposals(root: Path) -> tuple[Proposal, ...]:
    """What waits for approval, file by file."""
    keys = [one.proposal for one in _judge_all(root).values() if one.proposal]
    files = ((NEW_WORKFLOW, _workflow_contents), (NEW_PROJECT_SETTINGS, _project_contents))
    return (*keys, *(one for why, load in files for one in _new_files(root, why, load(root))))


def _new_files(root: Path, why: str, contents: Mapping[str, bytes]) -> Iterator[Proposal]:
    for name in _unapproved(root, contents):
        yield Proposal(file=name, problem=why, text=contents[name].decode(errors="replace"))


def remember_own(root: Path) -> None:
    """Record the values that a person wrote, so that they stay in effect once committed."""
    approvals = _approvals(root)
    found = {
        name: approval_of(one.layer, approvals.get(name, NOTHING), is_committed=one.is_committed)
        for name, one in _judge_all(root).items()
        if one.is_own and one.layer is not None
    }
    if found:
        _keep(root, {**approvals, **found})


def approve_key(root: Path, file: str, key: KeyPath, value: Any) -> None:
    """Approve one key that a person has just set in a file of the repository."""
    approvals = _approvals(root)
    if file in repository_files(root):
        known = with_key(approvals.get(file, NOTHING), key, value)
        _keep(root, {**approvals, file: known})
        remember_own(root)


def approve(root: Path) -> None:
    """Approve every file as it is now. Raises if one is not valid."""
    approvals = _approvals(root)
    for name, path in repository_files(root).items():
        content = read_file(path)
        if content is None:
            approvals.pop(name, None)
            continue
        layer, before = read_layer(name, content), approvals.get(name, NOTHING)
        is_committed = _tracking(root, name).is_tracked
        approvals[name] = approval_of(layer, before, is_committed=is_committed)
    for name, content in {**_workflow_contents(root), **_project_contents(root)}.items():
        approvals[name] = Approval(hashes=(content_hash(content),), is_committed=True)
    keep_approvals(root / FOLDER, approvals)


def trusted_workflow(root: Path | None, name: str) -> "Workflow":
    """The workflow of this name, unless a commit brought it and no person approved it."""
    waits = _unapproved_workflows(root) if root is not None else []
    parts = (f"{FOLDER}/workflows/{name}.toml", f"{FOLDER}/workflows/{name}/")
    if any(one.startswith(parts) for one in waits):
        raise UsageError(
            f"a commit brought the workflow {name}, and no person has approved it",
            hint="`crew trust` shows and approves it",
            code="not_approved",
        )
    from crew.config.workflow_files import find_workflow  # noqa: PLC0415 - for quests only

    return find_workflow(root, name)


def revoke(root: Path) -> None:
    """Forget every approval."""
    keep_approvals(root / FOLDER, {})


def repository_files(root: Path) -> dict[str, Path]:
    """The config files that a commit could bring."""
    return layer_files(root, {})


def _unapproved_workflows(root: Path) -> list[str]:
    """The files of workflows that git tracks and no person has approved as they are."""
    return _unapproved(root, _workflow_contents(root))


def _unapproved(root: Path, contents: Mapping[str, bytes]) -> list[str]:
    approvals = _approvals(root) if contents else {}
    return [
        name
        for name, content in contents.items()
        if content_hash(content) not in approvals.get(name, NOTHING).hashes
        and _tracking(root, name).is_tracked
    ]


def unapproved_project_files(root: Path, folder: Path, adapter: str) -> tuple[str, ...]:
    """The files that keep an agent's program from loading the repository's settings here.

    Each file with which it would start other programs must be approved as it is in this folder.
    """
    return unapproved_files(folder, project_settings(adapter), lambda: _approvals(root))


def _project_contents(root: Path) -> dict[str, bytes]:
    found = project_contents(root, ALL_PROJECT_SETTINGS)
    return {name: content for name, content in found.items() if content is not None}


def _workflow_contents(root: Path) -> dict[str, bytes]:
    folder = root / FOLDER / "workflows"
    found = (*folder.glob("*.toml"), *folder.glob("*/*.md"))
    return {str(one.relative_to(root)): read_file(one) or b"" for one in sorted(found)}


def _approvals(root: Path) -> dict[str, Approval]:
    """The approvals, unless a commit brought them."""
    folder = root / FOLDER
    if not (folder / NAME).exists():
        return {}
    from crew.git.tracked_files import may_be_tracked  # noqa: PLC0415 - the first commands need none

    return {} if may_be_tracked(root, f"{FOLDER}/{NAME}") else load_approvals(folder)


def _keep(root: Path, approvals: Mapping[str, Approval]) -> None:
    """Store approvals of a person's own values; without a crew or on a full disk they wait."""
    with suppress(OSError):
        keep_approvals(root / FOLDER, approvals)


def _judge_all(root: Path) -> dict[str, Judged]:
    approvals = _approvals(root)
    return {
        name: judged(
            name,
            read_file(path),
            approvals.get(name, NOTHING),
            functools.partial(_tracking, root, name),
        )
        for name, path in repository_files(root).items()
    }


def _tracking(root: Path, name: str) -> Tracking:
    """Asked after the file was read: a git that wrote it has ended, or is still seen at work."""
    from crew.git.tracked_files import is_changing, is_tracked  # noqa: PLC0415 - seldom asked

    changing = is_changing(root)
    return Tracking(
        is_tracked=is_tracked(root, name, is_changing=changing), is_settled=not changing
    )
