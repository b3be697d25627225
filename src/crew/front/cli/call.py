"""The common flags of a call: the directory, JSON, colours, verbosity."""

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from crew.domain.kernel.errors import NotFound
from crew.find_crew import load_folder

if TYPE_CHECKING:
    from crew.workplace import Workplace


@dataclass(slots=True, kw_only=True)
class Call:
    """The common flags, set while the command line is parsed, before or after the command."""

    directory: Path = field(default_factory=Path.cwd)
    json: bool = False
    no_colour: bool = False
    quiet: bool = False
    verbose: bool = False
    has_noted_disk: bool = False

    def workplace(self) -> "Workplace":
        # Slow to import, and not needed for help or a list of agents.
        from crew.workplace import Workplace  # noqa: PLC0415

        return Workplace(root=self.folder().parent, tell=self.tell)

    def tell(self, words: str) -> None:
        """Print a line for the person on stderr, unless the call is quiet."""
        if not self.quiet:
            print(words, file=sys.stderr)

    def folder(self) -> Path:
        """The `.crew/` that this call is about, unless an agent's step cannot see it."""
        if self.is_shut_in():
            raise NotFound(
                "this agent's step cannot see the crew it works for",
                hint="`crew show` shows the step's own task, and `git diff` what it has changed",
                code="shut_in",
            )
        found = load_folder(self.directory)
        self.note_read_only(found)
        return found

    def note_read_only(self, folder: Path) -> None:
        """Print once that nothing can be changed here, if that is so."""
        if self.quiet or self.has_noted_disk:
            return
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            self.has_noted_disk = True
            note = "this disk is read-only: crew shows what is on it and can change nothing"
            print(note, file=sys.stderr)

    def is_shut_in(self) -> bool:
        """Whether this is an agent's process in a sandbox, which sees no `.crew`, only the door."""
        if not os.environ.get("CREW_DOOR"):
            return False
        from crew.runner.requests.ask_with_token import is_shut_in  # noqa: PLC0415 - for agents

        return is_shut_in(self.directory)

    def has_colour(self, stream: TextIO) -> bool:
        """Whether to use colours: `NO_COLOR`, then `FORCE_COLOR`, then the terminal decides."""
        if self.no_colour or self.json or os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR", "0") != "0":
            return True
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def is_live(self) -> bool:
        """Whether stderr is a terminal on which a live frame can be drawn."""
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


pass_call = click.make_pass_decorator(Call)
