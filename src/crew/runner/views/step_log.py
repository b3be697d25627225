"""Writes crew's own lines into the log of a task, and reads whether a step printed DONE."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from crew.runner.views.log_end import size_of, steps_from_end
from crew.runner.views.read_log import chunks_between, entries_of_chunks
from crew.system.crash_points import effect
from crew.system.private_files import append_lines


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
    append_lines(log, f"=== {words} ===\n".encode(errors="surrogateescape"))


def says_done(log: Path, word: str, *, step: str) -> bool:
    """Whether the agent wrote the word alone on a line in this step, the last one of the log.

    A step that was killed before its first line is not in the log, and an earlier one proves
    nothing about it. The output of tools and the words of helpers do not count either.
    """
    try:
        return any(word == line.strip() for line in _said_in(log, step))
    except OSError:
        return False


def _said_in(log: Path, step: str) -> Iterator[str]:
    """The lines that the agent itself wrote in this step; none if another step is the last one."""
    end = size_of(log)
    start, last = next(steps_from_end(log, end=end), (0, "")) if end else (0, "")
    if last != step:
        return
    for entry in entries_of_chunks(chunks_between(log, start, end)):
        if entry.kind in {"said", "text"} and not entry.is_helper:
            yield from entry.text.splitlines()
