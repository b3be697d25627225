"""Where the benchmarks make their files: what measures crew's own CPU does it in memory.

A disk adds CPU of its own, and how much depends on the file system: one without a journal looks for
a free place for each new file among all that were deleted in the last minutes.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IN_MEMORY = frozenset({"cpu", "steps"})
MEMORY = Path("/dev/shm")


def folder_for(name: str) -> str:
    """The folder for a benchmark's files: what `TMPDIR` names, or else memory or the disk."""
    has_memory = name in IN_MEMORY and os.access(MEMORY, os.W_OK)
    return os.environ.get("TMPDIR") or (str(MEMORY) if has_memory else tempfile.gettempdir())


@contextmanager
def chosen(name: str) -> Iterator[str]:
    """Let this benchmark and what it starts make their files in its folder."""
    folder, before = folder_for(name), os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    try:
        yield folder
    finally:
        tempfile.tempdir = None
        if before is None:
            del os.environ["TMPDIR"]
