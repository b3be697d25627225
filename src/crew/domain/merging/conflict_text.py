"""The notes about a conflict: what to merge, what each side changed, and whose work landed."""

from typing import NamedTuple

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import attributed, headline, quoted_start
from crew.domain.lead import Leads
from crew.domain.world import World

MOST_FILES = 12
MOST_LANDED = 6
LONGEST_FILE = 3_000
LONGEST_SIDES = 12_000
"""Characters of all hunks together."""

LONGEST_PURPOSE = 800


class Hunks(NamedTuple):
    """The conflicting parts of one file, with the base between the two sides."""

    path: str
    text: str


class Landed(NamedTuple):
    """A commit of the other side that changed a file in conflict; a person's has no `task`."""

    task: str
    subject: str


@frozen
class Sides:
    """The two sides of a conflict as git knows them; `base` is their common commit."""

    base: str = ""
    hunks: tuple[Hunks, ...] = ()
    landed: tuple[Landed, ...] = ()


def conflict_notes(
    world: World, leads: Leads, sides: Sides, *, commit: str, paths: tuple[str, ...], detail: str
) -> str:
    """The notes for the agent that resolves the conflict, within a size limit."""
    names = "\n".join(map(headline, paths[:MOST_FILES]))
    more = f"\n(and {len(paths) - MOST_FILES} more)" if len(paths) > MOST_FILES else ""
    parts = (
        f"The commit to merge: {commit}",
        f"Both sides began from: {sides.base}" if sides.base else "",
        attributed("Files in conflict", names) + more,
        attributed("git says", detail, most=LONGEST_FILE) if detail else "",
        _landed(world, leads, sides.landed),
        _hunks(sides.hunks),
    )
    return "\n\n".join(part for part in parts if part)


def _landed(world: World, leads: Leads, landed: tuple[Landed, ...]) -> str:
    if not landed:
        return ""
    shown = [_author(world, leads, one) for one in landed[:MOST_LANDED]]
    return "\n".join(("What landed there, the newest first:", *shown))


def _author(world: World, leads: Leads, landed: Landed) -> str:
    """The task and its purpose, if its lead knows it."""
    task = world.tasks.get(landed.task)
    if task is None:
        author = "A commit by a person" if not landed.task else "A commit"
        return f"{author}:\n{quoted_start(landed.subject, most=LONGEST_PURPOSE)}"
    head = f"- task {task.id}: {headline(task.title)}"
    purpose = leads.of_task(world, task.id).purpose(world, task)
    return f"{head}\n{quoted_start(purpose, most=LONGEST_PURPOSE)}" if purpose else head


def _hunks(hunks: tuple[Hunks, ...]) -> str:
    """The hunks as git marks them in the agent's worktree: its own side, base, landed side."""
    parts: list[str] = []
    room = LONGEST_SIDES
    for one in hunks:
        text = f"{headline(one.path)}:\n{quoted_start(one.text, most=LONGEST_FILE)}"
        if len(text) > room:
            parts.append(f"(the conflicts of {len(hunks) - len(parts)} more files are left out)")
            break
        room -= len(text)
        parts.append(text)
    if not parts:
        return ""
    legend = (
        "Both sides, as git marks them in your worktree: your side between <<<<<<< and |||||||, "
        "the base between ||||||| and =======, the side that landed between ======= and >>>>>>>."
    )
    return "\n\n".join((legend, *parts))
