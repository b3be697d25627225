"""Groups of fields of a run that change together; `row_changes` has all its fields.

Nothing of this is loaded when crew runs.
"""

from typing import TypedDict


class RunWishes(TypedDict, total=False):
    """What one start of a task may set otherwise than the config."""

    model: str
    told: str
    max_rounds: int
    done_word: str
    proof: str
    reviewers: tuple[str, ...] | None


class MergeAside(TypedDict, total=False):
    """What a run records about the merge that its agent has to make."""

    merge_commit: str
    merge_head: str
    merge_paths: tuple[str, ...]
    merge_notes: str
    merge_tries: int


class SentBackFields(MergeAside, total=False):
    max_rounds: int
