"""`crew loop`: runs one task in the foreground, through rounds of work and review."""

import time
from typing import TYPE_CHECKING, Any

import click

from crew.domain.kernel.errors import UsageError
from crew.domain.rows.terms import Terms, read_terms
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.crew.spawn import checked_kind
from crew.front.cli.params import base_option, text_or_stdin
from crew.front.cli.setup.agent_needs import check_kinds
from crew.front.cli.setup.gate_notice import check_gate
from crew.front.cli.tab_completion import complete_kinds
from crew.front.cli.terminal.foreground import drive
from crew.runner.requests.ask_crew import wake
from crew.tasks.task_source import NewTask
from crew.workplace import at_least_two

if TYPE_CHECKING:
    from crew.workplace import Workplace


LONGEST_TITLE = 80


@command("loop", example='crew loop "Fix the login" --review single --proof "make test"')
@click.argument("prompt")
@click.option(
    "--agent",
    "kind",
    metavar="A",
    shell_complete=complete_kinds,
    help="Agent kind that does the work.",
)
@click.option(
    "--reviewer",
    "named",
    multiple=True,
    metavar="B",
    shell_complete=complete_kinds,
    help="Reviewer kind (repeatable; each of them must pass the work).",
)
@click.option(
    "--review", "mode", type=click.Choice(["none", "single", "claudex"]), help="Review mode."
)
@click.option(
    "--max-rounds", type=click.IntRange(1), default=20, help="Give up after this many rounds."
)
@click.option("--done", "done_word", default="DONE", help="The word that ends the work.")
@click.option("--proof", default="", metavar="CMD", help="Command that must also succeed.")
@base_option
@pass_call
def loop(call: Call, /, *, prompt: str, kind: str | None, base: str | None, **wishes: Any) -> int:
    """Run one task through work and review, in the foreground.

    These options apply to every run of the task. If a runner is up, it does the work and this
    command follows it; Ctrl-C only stops following. Without a runner the work happens in this
    process; Ctrl-C keeps everything, and `crew resume` continues it.

    A round ends at the word of --done, or at the step limit. If the agent never says the word and
    no reviewer passes the work, the loop fails after --max-rounds; its branch is kept.

    Exit code 0: merged. 6: it failed or waits for a person; the last line says why. 75: its
    delivery waits, or it was stopped.
    """
    workplace = call.workplace()
    words = text_or_stdin(prompt) or ""
    title = next((text.strip() for text in words.splitlines() if text.strip()), None)
    if title is None:
        raise UsageError("the prompt is empty", hint="describe the work", code="empty_prompt")
    worker = checked_kind(workplace, kind)
    branch = workplace.base_of_new(base, place=call.directory)
    terms = _terms(workplace, worker, wishes)
    reviewers = dict(terms).get("reviewers", workplace.rules.reviewers)
    check_kinds(workplace, (worker, *(reviewers if isinstance(reviewers, tuple) else ())))
    check_gate(workplace, workplace.root)
    new = NewTask(title=title[:LONGEST_TITLE], body=words, agent=worker, base=branch, terms=terms)
    task = workplace.source.add(new, at=time.time())
    wake(workplace)
    return drive(call, workplace, task)


def _terms(workplace: "Workplace", worker: str, wishes: dict[str, Any]) -> Terms:
    reviewers = _reviewers(workplace, worker, wishes.pop("mode"), wishes.pop("named"))
    asked = {**wishes, "reviewers": reviewers}
    try:
        return read_terms({name: value for name, value in asked.items() if value not in (None, "")})
    except ValueError as error:
        raise UsageError(str(error), hint="`crew loop --help` lists the options") from error


def _reviewers(
    workplace: "Workplace", worker: str, mode: str | None, named: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The reviewers from the flags, none of them dropped; None leaves them to the config."""
    if mode is None and not named:
        return None
    agents = workplace.settings.agents
    reviewers = tuple(dict.fromkeys(agents.named(name).name for name in named))
    most = {"none": 0, "single": 1}.get(mode or "", len(reviewers))
    if len(reviewers) > most:
        raise UsageError(
            f"--review {mode} asks {'one reviewer' if most else 'no reviewer'}, "
            f"and --reviewer names {', '.join(reviewers)}",
            hint="leave --review out: each named reviewer is asked",
            code="too_many_reviewers",
        )
    if mode == "none":
        return ()
    asked = reviewers or (agents.named(agents.reviewer_default).name,)
    if mode != "claudex" or len(asked) > 1:
        return asked
    return at_least_two((worker, *asked), workplace.settings)
