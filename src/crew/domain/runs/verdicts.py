"""The verdict of a reviewer for one commit: how it is parsed, and whose PASS is missing."""

import re
from collections.abc import Iterable
from itertools import cycle, islice

from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import LONGEST_NOTES, attributed
from crew.domain.rows.run import Run
from crew.domain.world import noted

PASS = "PASS"  # noqa: S105 - a word of the reviewer's, not of anybody's login
FAIL = "FAIL"

_SAYS_FAIL = re.compile(r"(?!>)\W*(?:(?i:verdict)\W+)?\bFAIL\b\W*?(?:$|[:,\u2013\u2014-])")
"""A line that gives the verdict FAIL. A quotation does not count, nor does a file name after the
word, as test programs print it."""


@frozen
class Verdict:
    """The verdict of a reviewer; `passed` needs a PASS alone on the last line."""

    commit: str
    reviewer: str
    passed: bool
    notes: str = ""


def said(text: str) -> bool | None:
    """The verdict of the last line that is not empty: exactly PASS, exactly FAIL, or none.

    A PASS counts only if no line above gives the verdict FAIL in any form ("**FAIL**", "Verdict:
    FAIL", "FAIL: no tests"), because a reviewer that gave both has not decided.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or lines[-1] not in {PASS, FAIL}:
        return None
    return not any(map(_SAYS_FAIL.match, lines))


def verdict(text: str, *, commit: str, reviewer: str) -> Verdict:
    """The verdict in a reviewer's text; an unclear one counts as FAIL, with a note."""
    heard, notes = said(text), text.strip()
    if heard is None:
        notes = f"{notes}\n\n(no verdict: the last line must be {PASS} or {FAIL} alone)".strip()
    elif not heard and notes.endswith(PASS):
        notes = f"{notes}\n\n(a line above gives the verdict {FAIL}: a {PASS} below it is a {FAIL})"
    return Verdict(commit=commit, reviewer=reviewer, passed=heard is True, notes=notes)


def recorded(run: Run, found: Verdict, *, at: float) -> Fact:
    known = (found.commit, found.reviewer, found.passed)
    return noted(run, "reviewed", at=at, verdicts=(*run.verdicts, known))


def still_to_ask(
    run: Run, reviewers: tuple[str, ...], *, commit: str, needed: int
) -> tuple[str, ...]:
    """The reviewers whose PASS for this commit is missing.

    A PASS of another reviewer replaces that of the last one.
    """
    missing = list(islice(cycle(reviewers), needed))
    for reviewer in passes(run, commit)[:needed]:
        missing.remove(reviewer if reviewer in missing else missing[-1])
    return tuple(missing)


def passes(run: Run, commit: str) -> tuple[str, ...]:
    """The reviewer of each PASS for exactly this commit.

    A later FAIL of the same reviewer revokes its PASS.
    """
    standing: tuple[str, ...] = ()
    for reviewed, reviewer, passed in run.verdicts:
        if reviewed == commit:
            kept = standing if passed else tuple(who for who in standing if who != reviewer)
            standing = (*kept, reviewer) if passed else kept
    return standing


def complaints(verdicts: Iterable[Verdict]) -> str | None:
    """The notes of all reviewers that failed the commit; None if all passed."""
    said_no = [found for found in verdicts if not found.passed]
    if not said_no:
        return None
    notes = (attributed(found.reviewer, found.notes, most=LONGEST_NOTES) for found in said_no)
    return "\n\n".join(notes)
