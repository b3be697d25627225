"""Completes arguments at Tab: ids of tasks, names of agents, channels and members."""

import contextlib
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem

from crew.domain.kernel.errors import CrewError
from crew.front.cli.call import Call

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


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
    """The members of the channel that was named before; a member's id is `channel/name`."""
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
