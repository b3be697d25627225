"""Checks before work begins that there is a gate, and that it can test."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crew.config.gate_command import choose_gate, read_gate_files
from crew.domain.kernel.errors import CheckFailed
from crew.domain.runs.gate import SET_GATE
from crew.front.cli.call import Call
from crew.front.cli.output import narrate
from crew.trusted_config import proposals

if TYPE_CHECKING:
    from crew.workplace import Workplace

GATE = ("complete", "command")


def empty_submodules(names: Sequence[str]) -> str:
    """What a person reads of submodules that are not cloned here; nothing if all are."""
    if not names:
        return ""
    return (
        f"neither agents nor the gate get the files of {', '.join(names)}: they are not cloned "
        "here; `git submodule update --init --recursive` clones them"
    )


def tell_gate(call: Call, workplace: "Workplace") -> None:
    """Raise if a required gate is missing; else print what is not tested."""
    check_gate(workplace, workplace.root)
    if not _has_gate(workplace, workplace.root):
        narrate(call, f"warning: nothing is tested: no gate is set or found ({SET_GATE})")
    if words := empty_submodules(workplace.empty_submodules):
        narrate(call, f"warning: {words}")


def check_gate(workplace: "Workplace", folder: Path) -> None:
    if _has_gate(workplace, folder):
        return
    if any(change.key == GATE for one in proposals(workplace.root) for change in one.changes):
        raise CheckFailed(
            "the gate that a commit proposes is not approved, and no other one is set",
            hint="`crew trust` shows and approves it",
            code="gate_not_approved",
        )
    if workplace.settings.complete.require_gate:
        raise CheckFailed(
            "no gate is set or found, and [complete] require_gate asks for one",
            hint=SET_GATE,
            code="no_gate",
        )


def _has_gate(workplace: "Workplace", folder: Path) -> bool:
    command = workplace.settings.complete.command
    files = read_gate_files(folder) if not command and folder.is_dir() else {}
    return choose_gate(command, files) is not None
