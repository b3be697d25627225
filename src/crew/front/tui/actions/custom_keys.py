"""The keys that a person bound to commands of their own in `[tui.keybindings]`."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from crew.config.model import KeyBinding
from crew.front.tui.actions.background_thread import in_background
from crew.front.tui.widgets.safe_text import safe

if TYPE_CHECKING:
    from crew.front.tui.view_app import CrewView


def usable_keys(
    bindings: Mapping[str, KeyBinding], built_in: Mapping[str, str]
) -> dict[str, KeyBinding]:
    """Those that clash with no key of the view, or are meant to."""
    return {key: one for key, one in bindings.items() if one.override or key not in built_in}


def clashes(bindings: Mapping[str, KeyBinding], built_in: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each key that the view has too, with both meanings."""
    for key, one in bindings.items():
        if key in built_in and not one.override:
            own = one.description or one.command
            yield (
                f"[tui.keybindings] {key} ({own}) is also a key of the view ({built_in[key]}): "
                "choose another key, or set override = true"
            )


async def run_custom(view: "CrewView", bound: KeyBinding) -> None:
    """Run the command and show how it ended; the view continues meanwhile."""
    from crew.runner.by_hand.custom_command import run_custom_command  # noqa: PLC0415 - for few people

    task = view.chosen_task
    name = safe(bound.description or bound.command)
    view.notify(f"{name}: started")
    end = await in_background(run_custom_command, view.root, bound, task)
    view.expect_tasks()
    if end.code == 0:
        view.notify(f"{name}: exit code 0")
    else:
        view.notify(f"{name}: exit code {end.code}\n{end.last_line}", severity="error")
