"""Judges a config file: which of its values are in effect, and which a commit only proposes.

A file that git does not track is a person's own, and all of it is in effect. In a tracked file,
only values that a person has approved are in effect. A changed value waits, and the approved one
stays in effect, even if a commit has removed it. Harmless values need no approval.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from crew.config.layers.layers import merged, modern, read_layer
from crew.config.layers.provenance import leaves
from crew.config.reserved_keys import KeyPath
from crew.config.trust.approvals import NOTHING, Approval, content_hash
from crew.config.trust.risky_keys import needs_approval, risky_values
from crew.config.validate_config import Layer
from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.frozen import frozen

UNSET: Any = None
"""TOML has no such value, so it marks a key that is not set."""


@frozen
class Tracking:
    """Whether a commit may have brought a file. Unless `is_settled`, git changes files now."""

    is_tracked: bool = False
    is_settled: bool = True


@frozen
class KeyProposal:
    """A key that a commit changed: the value in effect, and the proposed one."""

    key: KeyPath
    approved: Any = UNSET
    proposed: Any = UNSET


@frozen
class Proposal:
    """The changes of one file that wait for approval; `problem` is why it waits as a whole.

    `text` is what a person would approve of such a file.
    """

    file: str
    changes: tuple[KeyProposal, ...] = ()
    problem: str = ""
    text: str = ""


@frozen
class Judged:
    """A file after judgement: the layer in effect, and the proposal that waits.

    `is_own`: all of it is a person's own or approved, and is to be remembered as it is now.
    """

    layer: Layer | None
    proposal: Proposal | None = None
    is_own: bool = False
    is_committed: bool = False


def judged(
    name: str, content: bytes | None, approval: Approval, tracking: Callable[[], Tracking]
) -> Judged:
    """Judge a file by its content, None if there is no file. Git is asked only if it matters."""
    if content is None:
        return _deleted(name, approval, tracking)
    if approval.approves(content):
        return Judged(layer=read_layer(name, content))
    found = tracking()
    try:
        layer = read_layer(name, content)
    except UsageError as error:
        if not found.is_tracked or approval == NOTHING:
            raise
        waits = Proposal(file=name, problem=error.message)
        return Judged(layer=_approved_layer(name, approval), proposal=waits)
    if not found.is_tracked:
        return Judged(layer=layer, is_own=found.is_settled)
    return _compared(layer, approval)


def _deleted(name: str, approval: Approval, tracking: Callable[[], Tracking]) -> Judged:
    """A file that is gone: a commit may have deleted it, unless git still tracks it."""
    risky = _risky(approval.values)
    if not (approval.is_committed and risky) or tracking().is_tracked:
        return Judged(layer=None)
    waits = Proposal(file=name, changes=_changes(risky, {}))
    return Judged(layer=_approved_layer(name, approval), proposal=waits)


def _compared(layer: Layer, approval: Approval) -> Judged:
    changes = _changes(_risky(approval.values), risky_values(layer.values))
    if not changes:
        return Judged(layer=layer, is_own=True, is_committed=True)
    waits = Proposal(file=layer.name, changes=changes)
    return Judged(layer=_with_approved(layer, changes), proposal=waits)


def _risky(values: Mapping[KeyPath, Any]) -> dict[KeyPath, Any]:
    return {key: value for key, value in values.items() if needs_approval(key)}


def _changes(
    approved: Mapping[KeyPath, Any], now: Mapping[KeyPath, Any]
) -> tuple[KeyProposal, ...]:
    return tuple(
        KeyProposal(key=key, approved=approved.get(key, UNSET), proposed=now.get(key, UNSET))
        for key in dict.fromkeys([*approved, *now])
        if approved.get(key, UNSET) != now.get(key, UNSET)
    )


def _with_approved(layer: Layer, changes: Iterable[KeyProposal]) -> Layer:
    values = dict(leaves(layer.values))
    for change in changes:
        values.pop(change.key, None)
        if change.approved is not UNSET:
            values[change.key] = change.approved
    return Layer(name=layer.name, text=layer.text, values=nested(values))


def _approved_layer(name: str, approval: Approval) -> Layer:
    return Layer(name=name, text="", values=nested(approval.values))


def approval_of(layer: Layer, before: Approval, *, is_committed: bool) -> Approval:
    """The approval of the file that this layer was read from, next to those of before."""
    known = content_hash(layer.text.encode())
    return Approval(
        hashes=(*(one for one in before.hashes if one != known), known),
        text=layer.text,
        values=dict(leaves(layer.values)),
        is_committed=is_committed,
    )


def with_key(before: Approval, key: KeyPath, value: Any) -> Approval:
    """The approval after a person set one key of the file; some keys imply others."""
    values = {**before.values, **dict(leaves(modern(nested({key: value}))))}
    return replace(before, values=values)


def nested(values: Mapping[KeyPath, Any]) -> dict[str, Any]:
    """Tables made of keys with their values."""
    result: dict[str, Any] = {}
    for path, value in values.items():
        one: Any = value
        for part in reversed(path):
            one = {part: one}
        result = merged(result, one)
    return result
