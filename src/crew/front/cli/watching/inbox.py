"""`crew inbox` and `crew answer`: list the open questions, answer one."""

from typing import Any

import click

from crew.domain.requests import Request
from crew.domain.rows.question import About
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import line, narrate, print_json, quotation, say, table, under
from crew.front.cli.params import text_or_stdin
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.runner.requests.ask_crew import ask
from crew.runner.views.proposal_views import INBOX_ID, KIND, config_entries
from crew.runner.views.row_views import (
    inbox_view,
    open_question_views,
    rewrite_named,
    rewrite_view,
)
from crew.store.fact_log import load_world


@command("inbox", example="crew inbox\ncrew inbox q1\ncrew inbox --json")
@click.argument("question", required=False)
@pass_call
def inbox(call: Call, question: str | None) -> None:
    """List the open questions, or show one.

    It also lists what else needs a person, such as an agent that is not logged in. A named entry is
    shown with its whole context.
    """
    workplace = call.workplace()
    runs_at_terminals(workplace.folder, workplace.db)  # a terminal may show a dialog
    world, waiting = load_world(workplace.db), config_entries(workplace)
    if waiting and question == INBOX_ID:
        _show(call, waiting[0])
        return
    if question is not None:
        _show(call, inbox_view(world, question))
        return
    found = [*open_question_views(world), *waiting]
    if call.json:
        print_json(found)
        return
    if not found:
        narrate(call, "no open questions")
        return
    rows = [(q["id"], q["task"], q["role"], q["asked_at"], _asked(q)) for q in found]
    table(("ID", "TASK", "ROLE", "ASKED", "QUESTION"), rows, call)
    narrate(call, f"`crew inbox {found[0]['id']}` shows all of it; {_way_out(found[0])}")


def _way_out(view: dict[str, Any]) -> str:
    """The command that settles an entry."""
    if "answer_with" in view:
        return f"settle it with: {view['answer_with']}"
    if view["kind"] == About.DIALOG and not view["choices"]:
        return f"answer it at its terminal: crew attach {view['task']}"
    choices = view["choices"] or ["…"]
    by_number = ", or with its number" if view["choices"] else ""
    words = " | ".join(f'"{choice}"' for choice in choices)
    return f"answer with: crew answer {view['id']} {words}{by_number}"


def _asked(view: dict[str, Any]) -> str:
    choices = f" [{', '.join(view['choices'])}]" if view["choices"] else ""
    return f"{line(view['question'])}{choices}"


def _show(call: Call, view: dict[str, Any]) -> None:
    if call.json:
        print_json(view)
        return
    asked = f"{view['id']}  {view['role']} of task {view['task']} asks, {view['asked_at']}:"
    if view["kind"] == "suspicion":
        asked = f"{view['id']}  suspicious, {view['asked_at']}:"
    elif view["kind"] == KIND:
        asked = f"{view['id']}  waits for approval since {view['asked_at']}:"
    elif view["kind"] == "outage":
        asked = f"{view['id']}  paused since {view['asked_at']}:"
    elif view["kind"] == "rewrite":
        asked = f"{view['id']}  seen at {view['asked_at']}:"
    answer = under(view["status"], view["answer"] or "…") if view["status"] != "open" else ""
    choices = "\n".join(f"{n}. {line(one)}" for n, one in enumerate(view["choices"], start=1))
    said = (view["question"], view["context"] or "", choices if view["status"] == "open" else "")
    parts = (asked, *map(quotation, said), answer)
    say("\n\n".join(part for part in parts if part))
    if view["status"] == "open":
        narrate(call, _way_out(view))


@command("answer", example='crew answer q1 "use PostgreSQL"\ncrew answer q2 - < decision.txt')
@click.argument("question")
@click.argument("text")
@pass_call
def answer(call: Call, question: str, text: str) -> None:
    """Answer a question; its agent continues."""
    workplace = call.workplace()
    news = rewrite_named(load_world(workplace.db), question)
    args = {"question": question, "text": text_or_stdin(text)}
    ask(workplace, Request(verb="answer", args=args))
    if call.json and news:
        print_json({**rewrite_view(news), "status": "seen", "answer": args["text"]})
    elif call.json:
        print_json(inbox_view(load_world(workplace.db), question))
    else:
        narrate(call, f"question {question} is answered")
