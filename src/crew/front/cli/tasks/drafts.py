"""Reads a file of task drafts: blocks of front matter and text, one after the other.

    ---
    title: First
    labels: backend, api
    ---
    What to do.

    ---
    title: Second
    parent: 1
    after: 1, #12
    ---

A bare number names a block of the same file, `#12` a task that exists already. A `---` that no
block follows is part of the text.
"""

import heapq
import re
from collections.abc import Iterator
from pathlib import Path

from crew.domain.kernel.errors import Conflict, NotFound, UsageError
from crew.domain.kernel.frozen import frozen
from crew.front.cli.params import text_or_stdin

_FENCE = "---"
_FIELD = re.compile(r"([a-z_]+):(?:\s+(.*))?")
_HINT = "a block starts with ---, then lines like `title: …`, then --- and the text"
KNOWN = (
    "title",
    "labels",
    "parent",
    "after",
    "deps",
    "priority",
    "agent",
    "base",
    "issue",
    "skip_review",
)


@frozen
class TaskDraft:
    """A task as its block describes it; references are not resolved yet."""

    title: str
    body: str = ""
    named: frozenset[str] = frozenset()  # the names of the fields in the block's head
    labels: tuple[str, ...] = ()
    parent: str | None = None
    after: tuple[str, ...] = ()
    priority: int | None = None
    agent: str | None = None
    base: str | None = None
    issue: int | None = None
    skip_review: bool | None = None


def read_file(file: str, *, directory: Path) -> str:
    """The text of a file, whose path begins at the directory; `-` is stdin."""
    if file == "-":
        return text_or_stdin(file) or ""
    try:
        return (directory / file).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise NotFound(f"there is no file {file}", hint="- reads the drafts from stdin") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text", hint="save it as UTF-8") from error


def read_draft(text: str) -> TaskDraft:
    """The one draft of a file that changes a task; its title is optional."""
    found = read_drafts(text, need_title=False)
    if len(found) != 1:
        raise UsageError(
            f"the file has {len(found)} blocks, but only one task is changed", hint="keep one block"
        )
    return found[0]


def read_drafts(text: str, *, need_title: bool = True) -> list[TaskDraft]:
    """Every draft of the file, checked; an error names the line of the first mistake."""
    lines = text.replace("\r\n", "\n").removeprefix("\ufeff").split("\n")
    starts = [number for number in range(len(lines)) if _head_end(lines, number) is not None]
    # The fence that ends a head may look like the start of the next one.
    starts = [
        s for i, s in enumerate(starts) if i == 0 or s > (_head_end(lines, starts[i - 1]) or 0)
    ]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        raise UsageError("there is text before the first task", hint=_HINT)
    ends = [*starts[1:], len(lines)]
    drafts = [_draft(lines, start, end) for start, end in zip(starts, ends, strict=True)]
    if need_title and (untitled := [s for s, d in zip(starts, drafts, strict=True) if not d.title]):
        raise UsageError(f"line {untitled[0] + 1}: this task has no title", hint=_HINT)
    _refuse_wrong_references(drafts)
    return drafts


def block_number(reference: str) -> int | None:
    """The number of a block of the same file; None for an existing task."""
    return int(reference) if reference.isdecimal() else None


def _head_end(lines: list[str], start: int) -> int | None:
    """The last line of the head that begins here; None if none does."""
    if lines[start].rstrip() != _FENCE:
        return None
    fields = 0
    for number in range(start + 1, len(lines)):
        line = lines[number].strip()
        if line == _FENCE:
            return number if fields else None
        if line and not _FIELD.fullmatch(line):
            return None
        fields += bool(line)
    return None


def _draft(lines: list[str], start: int, end: int) -> TaskDraft:
    head = _head_end(lines, start) or start
    fields = dict(_fields(lines, start + 1, head))
    try:
        return TaskDraft(
            title=fields.get("title", ""),
            named=frozenset("after" if name == "deps" else name for name in fields),
            body="\n".join(lines[head + 1 : end]).strip("\n"),
            labels=_words(fields.get("labels", "")),
            parent=fields.get("parent") or None,
            after=_words(fields.get("after") or fields.get("deps") or ""),
            priority=int(fields["priority"]) if fields.get("priority") else None,
            agent=fields.get("agent") or None,
            base=fields.get("base") or None,
            issue=int(fields["issue"].removeprefix("#")) if fields.get("issue") else None,
            skip_review=_flag(fields.get("skip_review", "")),
        )
    except ValueError as error:
        raise UsageError(
            f"line {start + 1}: {error}", hint="priority and issue are numbers"
        ) from error


def _fields(lines: list[str], start: int, end: int) -> Iterator[tuple[str, str]]:
    for number in range(start, end):
        match = _FIELD.fullmatch(lines[number].strip())
        if match is None:
            continue
        if match[1] not in KNOWN:
            raise UsageError(
                f"line {number + 1}: unknown key {match[1]!r}", hint=f"known: {', '.join(KNOWN)}"
            )
        yield match[1], (match[2] or "").strip()


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.strip("[]").split(",") if word.strip())


def _flag(text: str) -> bool | None:
    if text.lower() not in {"", "true", "false"}:
        raise ValueError("skip_review is true or false")
    return text.lower() == "true" if text else None


def _refuse_wrong_references(drafts: list[TaskDraft]) -> None:
    waits: dict[int, list[int]] = {}
    parents: dict[int, list[int]] = {}
    for number, draft in enumerate(drafts, 1):
        waits[number] = blocks_waited_for(draft)
        parent = block_number(draft.parent or "")
        parents[number] = [] if parent is None else [parent]
        for block in (*waits[number], *parents[number]):
            if not 1 <= block <= len(drafts):
                raise UsageError(
                    f"{draft.title!r} names block {block}, and the file has {len(drafts)}",
                    hint=f"write #{block} if you mean the task with that id",
                )
    for graph, what in ((waits, "waits for"), (parents, "is the child of")):
        if cycle := _cycle(graph):
            words = f" {what} ".join(str(block) for block in cycle)
            raise Conflict(
                f"these blocks form a cycle: {words}",
                hint="break it at one of them",
                code="block_cycle",
            )


def blocks_waited_for(draft: TaskDraft) -> list[int]:
    return [block for ref in draft.after if (block := block_number(ref)) is not None]


def making_order(graph: dict[int, list[int]]) -> list[int]:
    """The blocks in an order in which each follows those it names; cycles are left out."""
    left = {block: set(named) for block, named in graph.items()}
    naming: dict[int, list[int]] = {block: [] for block in graph}
    for block, named in left.items():
        for one in named:
            naming[one].append(block)
    free = [block for block, named in left.items() if not named]
    order: list[int] = []
    while free:
        order.append(heapq.heappop(free))
        for block in naming[order[-1]]:
            left[block].discard(order[-1])
            if not left[block]:
                heapq.heappush(free, block)
    return order


def _cycle(graph: dict[int, list[int]]) -> list[int] | None:
    """The blocks of a cycle; the first is repeated as the last."""
    left = graph.keys() - set(making_order(graph))
    if not left:
        return None
    way = {min(left): 0}
    while (following := min(left.intersection(graph[next(reversed(way))]))) not in way:
        way[following] = len(way)
    return [*list(way)[way[following] :], following]
