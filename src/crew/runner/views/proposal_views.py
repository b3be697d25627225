"""Configuration that waits for approval, as lines, as JSON and as an entry of the inbox."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from crew.config.toml.toml_spans import written_key, written_value
from crew.domain.kernel.text import plain
from crew.runner.views.row_views import moment

if TYPE_CHECKING:
    from crew.config.trust.proposals import Proposal
    from crew.workplace import Workplace

INBOX_ID = "config"
KIND = "config_change"
MOST_NAMED = 6
MOST_LINES = 60
LONGEST_LINE = 500
LONGEST_TEXT = 20_000


def proposal_view(proposal: "Proposal") -> dict[str, Any]:
    return {
        "file": proposal.file,
        "problem": proposal.problem or None,
        "text": proposal.text[:LONGEST_TEXT] or None,
        "changes": [
            {"key": written_key(one.key), "approved": one.approved, "proposed": one.proposed}
            for one in proposal.changes
        ],
    }


def change_lines(proposal: "Proposal") -> Iterator[str]:
    """The file, and below it the values that hold (-) and those that a commit proposes (+)."""
    yield proposal.file
    if proposal.problem:
        yield f"  {plain(proposal.problem)}"
    lines = proposal.text.splitlines()
    yield from (f"+ {plain(line)[:LONGEST_LINE]}" for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        yield f"+ … and {len(lines) - MOST_LINES} more lines: read the file before you approve it"
    for one in proposal.changes:
        for sign, value in (("-", one.approved), ("+", one.proposed)):
            if value is not None:
                yield f"{sign} {plain(written_key(one.key))} = {plain(written_value(value))}"


def key_names(found: "Sequence[Proposal]") -> str:
    names = [plain(written_key(change.key)) for one in found for change in one.changes]
    names += [plain(one.file) for one in found if one.problem]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def config_entries(workplace: "Workplace") -> list[dict[str, Any]]:
    """The entry of the inbox while configuration waits for approval; it leaves with `crew trust`.

    It is read from the files each time, so that it never differs from what is in force.
    """
    from crew.trusted_config import proposals  # noqa: PLC0415 - for the inbox only

    found = proposals(workplace.root)
    if not found:
        return []
    changed = [workplace.root / one.file for one in found]
    changed_at = [one.stat().st_mtime for one in changed if one.exists()]
    return [
        {
            "id": INBOX_ID,
            "task": "",
            "run": "",
            "role": "",
            "question": f"A commit changed {key_names(found)}. Approve it?",
            "context": "\n".join(text for one in found for text in change_lines(one)),
            "asked_at": moment(max(changed_at)) if changed_at else "",
            "kind": KIND,
            "choices": [],
            "status": "open",
            "answer": None,
            "answer_with": "crew trust",
        }
    ]
