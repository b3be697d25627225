"""A fact: at this time, this trigger changed these fields of this one subject.

Facts are the only way a row changes. Folding the facts of a subject gives its row.
"""

from collections.abc import Mapping
from dataclasses import field

from crew.domain.kernel.frozen import frozen


@frozen
class Fact:
    """`source` and `target` are set when the fact is a move; `extra` is for readers of the log."""

    kind: str
    subject: str
    trigger: str
    at: float
    source: str | None = None
    target: str | None = None
    changes: Mapping[str, object] = field(default_factory=dict)
    extra: Mapping[str, object] = field(default_factory=dict)
