"""Reviews of one commit: the verdict, whose PASS is missing, the cost, a reviewer that waits."""

import re
from collections.abc import Iterable
from dataclasses import field, replace
from itertools import cycle, islice
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import LONGEST_NOTES, attributed
from crew.domain.provider_limits import PAUSING, paused, served
from crew.domain.rows.run import Run
from crew.domain.rows.step import NOTHING, UNREPORTED, StepError, Usage
from crew.domain.rules import Rules
from crew.domain.runs.run_holder import agent_of, freed
from crew.domain.world import World, noted

if TYPE_CHECKING:
    from crew.domain.row_changes import RunFields

PASS = "PASS"  # noqa: S105 - a verdict, not a password
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


def in_this_review(run: Run) -> Run:
    """The run with the verdicts of the review under way only, without those of earlier ones."""
    return replace(run, verdicts=tuple(one[:3] for one in run.unjudged))


def complaints(run: Run, commit: str) -> str | None:
    """The notes of all reviewers that failed the commit in this review; None if none did.

    A FAIL stands until the worker is told of it, whatever becomes of the other reviews.
    """
    judged = (one for one in run.unjudged if one[0] == commit)
    return "\n\n".join(notes for _, _, passed, notes in judged if not passed) or None


@frozen
class Review:
    """The outcome of a review: its verdict, or the error that prevented one, and its usage."""

    reviewer: str
    verdict: Verdict | None = None
    error: StepError | None = None
    usage: Usage = field(default_factory=Usage)


def review_ended(world: World, run: Run, review: Review, *, rules: Rules, at: float) -> list[Fact]:
    """Record a verdict and the cost of its review; a limit or an outage pauses the reviewer.

    The run waits for this review, so the verdict stays unjudged until all of them are judged.
    """
    facts = review_counted(world, run, review, at=at, is_awaited=True)
    if review.error is None:
        return [*facts, *served(world, review.reviewer, rules, at=at)]
    if review.error.kind in PAUSING:
        return [*facts, *paused(world, review.reviewer, review.error, rules, at=at)]
    return facts


def review_counted(
    world: World, run: Run, review: Review, *, at: float, is_awaited: bool = False
) -> list[Fact]:
    """Record the verdict, and add the usage to the sums of the run and of its agent."""
    facts = []
    if found := review.verdict:
        facts.append(noted(run, "reviewed", at=at, **_heard(run, found, is_awaited=is_awaited)))
    if review.usage == NOTHING:
        return facts
    facts.append(noted(run, "review_counted", at=at, **review.usage.added_to(run)))
    if agent := agent_of(world, run):
        facts.append(noted(agent, "review_counted", at=at, **review.usage.added_to(agent)))
    return facts


def _heard(run: Run, found: Verdict, *, is_awaited: bool) -> "RunFields":
    known = (found.commit, found.reviewer, found.passed)
    heard: RunFields = {"verdicts": (*run.verdicts, known)}
    if is_awaited:
        notes = attributed(found.reviewer, found.notes, most=LONGEST_NOTES)
        heard["unjudged"] = (*run.unjudged, (*known, "" if found.passed else notes))
    return heard


def review_lost(world: World, run: Run, reviewer: str, *, at: float) -> list[Fact]:
    """The cost of a review that crew ended, or died during, is unknown."""
    return review_counted(world, run, Review(reviewer=reviewer, usage=UNREPORTED), at=at)


def reviews_lost(world: World, tasks: Iterable[str], *, at: float) -> list[Fact]:
    """The same for the last runs of these tasks, after a kill."""
    rows = (world.tasks[task] for task in tasks if task in world.tasks)
    runs = (world.runs.get(row.run or "") for row in rows)
    return [fact for run in runs if run for fact in review_lost(world, run, "", at=at)]


def review_waits(world: World, run: Run, *, at: float) -> list[Fact]:
    """Free the agent while a reviewer is paused; the work waits, and its check is repeated."""
    agent = agent_of(world, run)
    facts = [noted(run, "review_waits", at=at, agent=None)]
    return [*facts, freed(agent, "parked", at=at)] if agent is not None else facts


def no_verdict(review: Review, task: str) -> CrewError:
    """The error of a review that came to no verdict."""
    error = review.error
    why, remedy = (error.message, error.remedy) if error else ("it gave no reason", "")
    return CrewError(
        f"{review.reviewer} could not review it: {why}",
        hint=remedy or f"look at .crew/logs/review-{task}.log",
        code="no_verdict",
    )
