"""A role's brief as text: the quest's request, decisions, plan and finished items, shortened."""

from crew.config.prompts import prompt
from crew.domain.kernel.errors import NotFound
from crew.domain.kernel.quotation import headline, quoted_start
from crew.domain.quests.brief import Brief, Built, Exchange, PlanLine, RoleWords
from crew.tasks.task_source import TaskSource

LONGEST_REQUEST = 4_000
LONGEST_WORDS = 2_000
"""The most characters of one author's text."""

LONGEST_LIST = 16_000
"""The most characters of all answers, and of all finished items."""

MOST_WORDS = 8
MOST_LINES = 40


def read_brief(source: TaskSource, brief: Brief | None) -> str:
    """The brief with the request's present text; empty for a task that belongs to no quest."""
    if brief is None:
        return ""
    return brief_text(brief, read_request(source, brief.quest))


def read_request(source: TaskSource, quest: str) -> str:
    """The text of the request; empty if its task was removed."""
    try:
        return source.show(quest).body
    except NotFound:
        return ""


def brief_text(brief: Brief, request: str) -> str:
    """The brief as text; of long lists it has the newest entries and the nearest items."""
    text = prompt(
        "brief",
        quest=brief.quest,
        title=headline(brief.title),
        request=quoted_start(request, most=LONGEST_REQUEST) if brief.key else "It is this task.",
        settled=_settled(brief),
        plan=_plan(brief),
        built=_listed([_built(one) for one in brief.built]),
    )
    return f"{text}\n"


def _settled(brief: Brief) -> str:
    """All decisions, and the newest answers that fit."""
    decided = [_words(one) for one in brief.decided[-MOST_WORDS:]]
    answers = [_exchange(one) for one in brief.answered]
    if decided and not answers:
        return "\n".join(decided)
    return "\n".join((*decided, _listed(answers)))


def _exchange(one: Exchange) -> str:
    return f"{_words(one.asked, most=LONGEST_WORDS // 2)}\n{_words(one.answer)}"


def _listed(parts: list[str]) -> str:
    """The newest entries that fit; the first line tells how many are left out."""
    room, kept = LONGEST_LIST, list[str]()
    for part in reversed(parts):
        room -= len(part) + 1
        if room < 0:
            break
        kept.insert(0, part)
    left_out = len(parts) - len(kept)
    first = [f"({left_out} more are left out here)"] if left_out else []
    return "\n".join((*first, *kept)) or "(nothing yet)"


def _words(said: RoleWords, *, most: int = LONGEST_WORDS) -> str:
    return f"{headline(said.author)}:\n{quoted_start(said.words, most=most)}"


def _plan(brief: Brief) -> str:
    """The plan; of a long one, the items around the present one."""
    keys = [line.key for line in brief.plan]
    here = keys.index(brief.key) if brief.key in keys else -1
    first = max(0, min(here - MOST_LINES // 2, len(keys) - MOST_LINES))
    shown = brief.plan[first : first + MOST_LINES]
    lines = [_line(n, one, brief) for n, one in enumerate(shown, start=first + 1)]
    place = f"You work on item {here + 1} of {len(keys)}.\n" if here >= 0 else ""
    return place + ("\n".join(lines) or "(none yet)")


def _line(number: int, one: PlanLine, brief: Brief) -> str:
    yours = " ← yours" if one.key == brief.key else ""
    return f"{number}. {one.key}: {headline(one.title)} ({one.state}){yours}"


def _built(one: Built) -> str:
    head = f"{one.key}: {headline(one.title)}, commit {one.commit[:12] or 'unknown'}"
    return "\n".join((head, *(_words(said, most=LONGEST_WORDS // 2) for said in one.summaries)))
