"""Opens a text in the person's editor and reads the edited text."""

import os
import shlex
import tempfile
from pathlib import Path

from crew.domain.kernel.errors import CrewError, NotFound, UsageError
from crew.system.private_files import FILE_MODE
from crew.system.processes.process import program_path, run_in_terminal

LONGEST = 4_000_000


def edit_text(text: str, *, name: str) -> str:
    """The text as the person left it; raises if the editor fails, so that nothing is taken over."""
    argv = editor()
    with tempfile.TemporaryDirectory(prefix="crew-edit-") as folder:
        file = Path(folder) / name
        file.write_text(text, encoding="utf-8")
        file.chmod(FILE_MODE)
        code, _ = run_in_terminal((*argv, str(file)), cwd=Path(folder), env=dict(os.environ))
        if code:
            raise CrewError(
                f"the editor {argv[0]} ended with exit code {code}",
                hint="nothing was changed; set EDITOR to another editor",
                code="editor_failed",
            )
        return _read(file)


def editor() -> tuple[str, ...]:
    """The person's editor with its arguments: $VISUAL, $EDITOR, or else vi."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        argv = tuple(shlex.split(chosen))
    except ValueError:
        argv = ()
    if not argv or program_path(argv[0], os.environ) is None:
        raise NotFound(
            f"there is no editor {chosen}", hint="set EDITOR to your editor", code="no_editor"
        )
    return argv


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"the text from the editor cannot be read: {error}", hint="save it as UTF-8 text"
        ) from error
