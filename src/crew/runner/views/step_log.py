"""Reads the log of a task: where a step begins, and whether the last one printed DONE."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from crew.agents.log_reader import entries_of
from crew.system.crash_points import effect
from crew.system.private_files import append_private

_READ_LAST = 256_000
_HEADER = re.compile(r"=== \S+: step \S+ ===")


def start_step(log: Path, *, agent: str, step: str) -> None:
    _append(log, f"{agent}: step {step}")


def note_messages(log: Path, numbers: Iterable[str]) -> None:
    """Note which messages the step has got, in its prompt or while it works."""
    for number in numbers:
        _append(log, f"got the message {number}")


def note_left_out(log: Path, names: tuple[str, ...]) -> None:
    """Name the files that the checkpoint of the last step does not have."""
    _append(log, f"left out of the checkpoint: {', '.join(names)}")


@effect("log.start")
def _append(log: Path, words: str) -> None:
    append_private(log, f"=== {words} ===\n".encode(errors="surrogateescape"))


def says_done(log: Path, word: str) -> bool:
    """Whether the last step printed the word alone on a line, as text or inside an event."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _READ_LAST))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return False
    return any(word in (said.strip() for said in _said(line)) for line in _last_step(lines))


def _last_step(lines: list[str]) -> list[str]:
    starts = [number for number, line in enumerate(lines) if _HEADER.fullmatch(line)]
    return lines[starts[-1] + 1 :] if starts else lines


def _said(line: str) -> Iterator[str]:
    """The lines that the agent itself wrote: not a tool's output, and not a helper's words."""
    for entry in entries_of(line):
        if entry.kind in {"said", "text"} and not entry.is_helper:
            yield from entry.text.splitlines()
