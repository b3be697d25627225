"""Reads the questions that a CLI asks a person, and has them answered one after the other."""

from collections.abc import Iterable

from crew.agents.adapter import Inquiry, Watch
from crew.agents.event_fields import Event, text_of


def listed_questions(values: Event) -> list[Event]:
    """The questions in the input of a CLI's tool. Claude Code and Codex use the same names."""
    return _objects(values.get("questions"))


def inquiry_of(asked: Event) -> Inquiry:
    options = _objects(asked.get("options"))
    described = [f"{text_of(one, 'label')}: {text_of(one, 'description')}" for one in options]
    several = ["Several of them may be chosen."] if asked.get("multiSelect") else []
    return Inquiry(
        question=text_of(asked, "question"),
        context="\n".join([*described, *several]),
        choices=tuple(text_of(one, "label") for one in options),
    )


async def answers_of(watch: Watch, inquiries: Iterable[Inquiry]) -> list[str] | None:
    """The answers of a person; None if no person can be asked."""
    answers = [await watch.inquired(one) for one in inquiries]
    given = [one for one in answers if one is not None]
    return given if len(given) == len(answers) else None


def _objects(listed: object) -> list[Event]:
    return [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
