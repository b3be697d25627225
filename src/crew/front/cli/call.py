"""How crew was called: where, and in which shape the answer is wanted."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

if TYPE_CHECKING:
    from crew.workplace import Workplace


@dataclass(slots=True, kw_only=True)
class Call:
    """Filled in while the command line is read: flags may stand before or after the command."""

    directory: Path = field(default_factory=Path.cwd)
    json: bool = False
    no_colour: bool = False
    quiet: bool = False
    verbose: bool = False

    def workplace(self) -> "Workplace":
        # Slow to import: whoever only wants help or a list of agents must not pay for it.
        from crew.workplace import find_workplace  # noqa: PLC0415

        return find_workplace(self.directory)

    def has_colour(self, stream: TextIO) -> bool:
        """`NO_COLOR` wins over `FORCE_COLOR`; otherwise a terminal that can do it decides."""
        if self.no_colour or self.json or os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR", "0") != "0":
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def is_live(self) -> bool:
        """Whether a person watches a terminal that can be painted on."""
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


pass_call = click.make_pass_decorator(Call)
