"""Arguments and options that many commands share, and how a shell completes them."""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import click
from click.shell_completion import CompletionItem

from crew.domain.kernel.errors import CrewError, UsageError
from crew.front.cli.call import Call

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class Duration(click.ParamType):  # type: ignore[type-arg]
    """`30s`, `10m`, `2h`, as seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        from crew.config.toml.value_kinds import read_duration  # noqa: PLC0415 - for few commands

        try:
            return read_duration(float(value) if str(value).isdigit() else value)
        except ValueError as error:
            self.fail(f"{value!r} is not {error}", param, ctx)


DURATION = Duration()


def complete_tasks(ctx: click.Context, _param: click.Parameter, start: str) -> list[CompletionItem]:
    with contextlib.suppress(CrewError, OSError):
        items = _call(ctx).workplace().snapshot().items
        return [CompletionItem(t.id, help=t.title) for t in items if t.id.startswith(start)]
    return []


def _complete_rows(kind: str) -> Completer:
    def complete(ctx: click.Context, _param: click.Parameter, start: str) -> list[CompletionItem]:
        return [item for item in _rows(ctx, kind) if item.value.startswith(start)]

    return complete


complete_agents = _complete_rows("agent")
complete_channels = _complete_rows("channel")


def complete_members(
    ctx: click.Context, _param: click.Parameter, start: str
) -> list[CompletionItem]:
    """Those of the channel that was named before; a member is called `channel/name`."""
    prefix = f"{ctx.params.get('name')}/"
    members = [item for item in _rows(ctx, "member") if item.value.startswith(prefix + start)]
    return [CompletionItem(item.value.removeprefix(prefix), help=item.help) for item in members]


def _rows(ctx: click.Context, kind: str) -> list[CompletionItem]:
    from crew.find_crew import load_folder  # noqa: PLC0415
    from crew.store.database import open_database  # noqa: PLC0415
    from crew.store.fact_log import load_rows  # noqa: PLC0415

    with contextlib.suppress(CrewError, OSError):
        rows = load_rows(open_database(load_folder(_call(ctx).directory) / "crew.db"), kind)
        there = (row for row in rows.values() if not getattr(row, "dismissed", False))
        return [CompletionItem(row.id, help=row.state) for row in there]
    return []


def complete_subjects(
    ctx: click.Context, param: click.Parameter, start: str
) -> list[CompletionItem]:
    return [*complete_agents(ctx, param, start), *complete_tasks(ctx, param, start)]


def complete_kinds(ctx: click.Context, _param: click.Parameter, start: str) -> list[CompletionItem]:
    with contextlib.suppress(CrewError, OSError):
        known = _call(ctx).workplace().settings.agents.by_name
        return [CompletionItem(name) for name in known if name.startswith(start)]
    return []


def _call(ctx: click.Context) -> Call:
    return ctx.find_object(Call) or Call()


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


worker_option = click.option(
    "--worker", metavar="A", shell_complete=complete_kinds, help="Another name for the agent."
)


def one_agent(agent: str | None, worker: str | None) -> str | None:
    """The agent that was named, by either name; two different ones are a mistake."""
    if agent and worker and agent != worker:
        raise UsageError(f"two agents are named: {agent} and {worker}", hint="name one of them")
    return agent or worker


yes_option = click.option("-y", "--yes", is_flag=True, help="Do it without asking.")


def confirm(question: str, *, yes: bool) -> bool:
    """Ask a person; where there is none, `--yes` must have been given."""
    if yes:
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{question} Nobody is here to answer.", hint="say so with --yes")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def text_or_stdin(text: str | None) -> str | None:
    """`-` stands for what comes on stdin."""
    if text != "-":
        return text
    return sys.stdin.buffer.read().decode(errors="replace")
