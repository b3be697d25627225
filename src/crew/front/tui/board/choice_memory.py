"""Keeps what a person chose for the board in `.crew/config.runtime.toml`, for the next time."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from crew.config.layers.layer_files import RUNTIME
from crew.config.layers.layers import read_file, read_layer
from crew.config.model import TuiSettings
from crew.config.reserved_keys import KeyPath
from crew.config.set_key import set_values
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.front.tui.board.view_choices import KEPT, ViewChoices
from crew.system.atomic_files import put_in_place
from crew.trusted_config import load_settings


@frozen
class LoadedView:
    """The settings of the view, None if they cannot be read; `problem` is the message about it."""

    settings: TuiSettings | None = None
    problem: str = ""

    @property
    def theme(self) -> str:
        return self.settings.theme if self.settings else "auto"


def load_view(root: Path) -> LoadedView:
    """The settings of the view; a broken file that crew itself wrote is set aside."""
    try:
        return LoadedView(settings=load_settings(root).tui)
    except CrewError as error:
        problem = error.message
    if not _is_broken(root):
        return LoadedView(problem=problem)
    aside = f"{RUNTIME}.broken"
    try:
        put_in_place(root / RUNTIME, root / aside)
        settings = load_settings(root).tui
    except (CrewError, OSError):
        return LoadedView(problem=problem)
    return LoadedView(settings=settings, problem=f"{problem}; it is now {aside}")


def _is_broken(root: Path) -> bool:
    try:
        content = read_file(root / RUNTIME)
        if content is not None:
            read_layer(RUNTIME, content)
    except CrewError:
        return True
    return False


class ChoiceMemory:
    """Writes changed choices, one after the other, without a wait for the disk."""

    def __init__(self, root: Path, on_failure: Callable[[str], None]) -> None:
        self._root = root
        self._on_failure = on_failure
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="crew-choices")

    def keep(self, before: ViewChoices, after: ViewChoices) -> None:
        changed: dict[KeyPath, Any] = {
            ("tui", name): getattr(after, name)
            for name in KEPT
            if getattr(before, name) != getattr(after, name)
        }
        if changed:
            self._pool.submit(self._write, changed)

    def close(self) -> None:
        """Wait until everything is written."""
        self._pool.shutdown(wait=True)

    def _write(self, values: dict[KeyPath, Any]) -> None:
        try:
            set_values(self._root, os.environ, scope="runtime", values=values)
        except CrewError as error:
            self._on_failure(error.message)
        except OSError as error:
            self._on_failure(str(error))
