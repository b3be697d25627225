"""Arguments and options that several commands share."""

import sys
from collections.abc import Callable
from typing import Any

import click

from crew.domain.kernel.errors import UsageError
from crew.front.cli.tab_completion import (
    complete_agents,
    complete_channels,
    complete_kinds,
    complete_members,
    complete_subjects,
    complete_tasks,
)

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A duration such as `30s`, `10m` or `2h`, in seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from crew.config.toml.value_kinds import read_duration  # noqa: PLC0415 - for few commands

        try:
            return read_duration(float(value) if str(value).isdecimal() else value)
        except ValueError as error:
            self.fail(f"{value!r} is not {error}", param, ctx)


DURATION = Duration()


def task_argument(name: str = "task", *, required: bool = True) -> Decorator:
    return click.argument(name, shell_complete=complete_tasks, required=required)


def agent_argument(name: str = "name") -> Decorator:
    return click.argument(name, shell_complete=complete_agents)


def channel_argument(name: str = "name") -> Decorator:
    return click.argument(name, shell_complete=complete_channels)


def member_argument(name: str = "agent") -> Decorator:
    return click.argument(name, shell_complete=complete_members)


def subject_argument() -> Decorator:
    """An agent's name or a task."""
    return click.argument("subject", metavar="NAME|TASK", shell_complete=complete_subjects)


def kind_option(text: str) -> Decorator:
    return click.option("--agent", "kind", metavar="KIND", shell_complete=complete_kinds, help=text)


def worker_option(same_as: str) -> Decorator:
    return click.option(
        "--worker", metavar="A", shell_complete=complete_kinds, help=f"Same as {same_as}."
    )


def one_agent(agent: str | None, worker: str | None) -> str | None:
    """The agent from either of two options; two different names are an error."""
    if agent and worker and agent != worker:
        raise UsageError(
            f"two agents are named: {agent} and {worker}",
            hint="name one of them",
            code="two_agents",
        )
    return agent or worker


base_option = click.option(
    "--base",
    metavar="BRANCH",
    help="Branch to start from and to land on.  [default: tasks.new_task_base]",
)

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


def confirm(question: str, *, yes: bool) -> bool:
    """Ask for confirmation; without a terminal, `--yes` is required."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"this needs a confirmation, and there is no terminal to ask for it: {question}",
            hint="confirm with --yes",
            code="needs_yes",
        )
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def text_or_stdin(text: str | None) -> str | None:
    """The text, or all of stdin if it is `-`."""
    if text != "-":
        return text
    return sys.stdin.buffer.read().decode(errors="replace")
