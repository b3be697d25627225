"""The notes in a checkpoint's message: the commits it holds, and the files it lacks."""

import json
from collections.abc import Iterator
from typing import Any

from crew.domain.kernel.frozen import frozen
from crew.git.checkpoints.nested_history import History

_RESET_AWAY, _NESTED, _LEFT_OUT, _NO_HEAD = "Reset-away", "Nested", "Left-out", "No-head"
MOST_LEFT_OUT = 50


@frozen
class Notes:
    """`has_no_head`: the worktree was on a branch without commits."""

    reset_away: tuple[str, ...] = ()
    nested: tuple[History, ...] = ()
    left_out: tuple[str, ...] = ()
    has_no_head: bool = False

    @property
    def commits(self) -> tuple[str, ...]:
        """The commits that the checkpoint must hold besides HEAD."""
        inner = (commit for history in self.nested for commit in history.commits)
        return tuple(dict.fromkeys((*self.reset_away, *inner)))

    def message(self, label: str) -> str:
        lines = [f"{key}: {json.dumps(value)}" for key, value in self._trailers()]
        return "\n\n".join(part for part in (label, "\n".join(lines)) if part) + "\n"

    def _trailers(self) -> Iterator[tuple[str, Any]]:
        yield from ((_RESET_AWAY, commit) for commit in self.reset_away)
        for one in self.nested:
            yield _NESTED, {"path": one.path, "head": one.head, "refs": dict(one.refs)}
        yield from ((_LEFT_OUT, note) for note in self.left_out[:MOST_LEFT_OUT])
        if more := self.left_out[MOST_LEFT_OUT:]:
            yield _LEFT_OUT, f"and {len(more)} more"
        if self.has_no_head:
            yield _NO_HEAD, True


NO_NOTES = Notes()


def read_notes(body: str) -> Notes:
    """Parse the notes of a message, which follow its first line."""
    values: dict[str, list[Any]] = {}
    for line in body.splitlines():
        key, colon, value = line.partition(": ")
        if colon and key in {_RESET_AWAY, _NESTED, _LEFT_OUT, _NO_HEAD}:
            values.setdefault(key, []).append(json.loads(value))
    return Notes(
        reset_away=tuple(values.get(_RESET_AWAY, ())),
        nested=tuple(History(**one) for one in values.get(_NESTED, ())),
        left_out=tuple(values.get(_LEFT_OUT, ())),
        has_no_head=_NO_HEAD in values,
    )
