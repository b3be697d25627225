"""What the plugins of assistants call: open questions for a hook, and news for a monitor.

Both print nothing where no crew is, and nothing for an agent, whose CLI loads the plugins of its
user too. The words of agents reach the person, not the model of the assistant: it gets only ids.
"""

import os
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.find_crew import find_folder
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import print_json_line, say
from crew.front.cli.watching.open_questions import asked_lines
from crew.runner.requests.agent_process import is_agent_process
from crew.store.database import change_count, open_database
from crew.store.quick_rows import load_questions

if TYPE_CHECKING:
    from crew.store.database import Database

LOOK_EVERY_S = 1.0
NEWS = {
    ("task", "error"): "task {} has failed: crew show {}",
    ("agent", "stuck"): "agent {} is stuck: crew ps",
    ("quest", "complete"): "quest {} is complete",
}


@command("_waiting", example="crew _waiting SessionStart")
@click.argument("event")
@pass_call
def waiting(call: Call, event: str) -> None:
    """Print the open questions as the answer of a hook, or nothing."""
    with suppress(CrewError, OSError):
        folder = _crew_of_a_person(call.directory)
        if folder is None:
            return
        with closing(open_database(folder / "crew.db")) as db:
            questions = sorted(load_questions(db), key=lambda one: one.asked_at)
        if questions:
            names = ", ".join(f"{one.id} (task {one.task})" for one in questions)
            context = (
                f"Questions of crew's agents wait for the person: {names}. "
                "The tool list-questions of crew reads them; only the person decides."
            )
            output = {"hookEventName": event, "additionalContext": context}
            words = "\n".join(("crew:", *asked_lines(questions)))
            print_json_line({"systemMessage": words, "hookSpecificOutput": output})


@command("_news", example="crew _news")
@pass_call
def news(call: Call) -> None:
    """Print each question, failure and end of a quest as one line, until the caller ends.

    Each line wakes the assistant's model, which costs tokens; a merge needs no person.
    """
    folder = _crew_of_a_person(call.directory)
    if folder is None:
        return
    with closing(open_database(folder / "crew.db")) as db:
        _follow(db, parent=os.getppid())


def _crew_of_a_person(directory: Path) -> Path | None:
    """The crew of this folder; None for an agent."""
    return None if is_agent_process() else find_folder(directory.resolve())


def _follow(db: "Database", *, parent: int) -> None:
    from crew.store.fact_log import facts_after, last_fact  # noqa: PLC0415 - only to follow

    last, seen = last_fact(db), -1
    while os.getppid() == parent:  # a caller that was killed ends it too
        if seen != (seen := change_count(db)):
            for number, fact in facts_after(db, last):
                last = number
                if words := news_of(fact):
                    say(words)
            sys.stdout.flush()
        time.sleep(LOOK_EVERY_S)


def news_of(fact: Fact) -> str:
    """What a person should know of a fact, in ids alone; empty for nearly all facts."""
    if (fact.kind, fact.trigger) == ("question", "asked"):
        return f"question {fact.subject} waits for the person: crew inbox {fact.subject}"
    if fact.source == fact.target:
        return ""
    return NEWS.get((fact.kind, str(fact.target)), "").format(fact.subject, fact.subject)
