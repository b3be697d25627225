"""A task as text: for the person's editor, and for the clipboard."""

from collections.abc import Iterator, Mapping

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.text import plain
from crew.domain.rows.task_item import TaskItem

FENCE = "---"


@frozen
class TextChanges:
    """What the person changed: a block for `crew edit --from`, and flags next to it."""

    block: str
    flags: tuple[str, ...] = ()


def task_block(item: TaskItem) -> str:
    """The task as one block of `crew new --from`, with all fields that a person may change."""
    head = [f"{name}: {value}".rstrip() for name, value in _fields(item).items()]
    return "\n".join([FENCE, *head, FENCE, item.body.rstrip("\n"), ""])


def _fields(item: TaskItem) -> dict[str, str]:
    return {
        "title": item.title,
        "labels": ", ".join(item.labels),
        "parent": f"#{item.parent}" if item.parent else "",
        "after": ", ".join(f"#{dep}" for dep in item.deps),
        "priority": str(item.priority),
        "agent": item.agent or "",
    }


def changes_to(before: str, after: str) -> TextChanges | None:
    """Only the fields that differ, so that what others changed meanwhile stays; None for none."""
    old, old_body = _parted(before)
    if not after.strip() or after == before:
        return None
    new, body = _parted(after)
    if not new:
        return TextChanges(block=after)  # `crew edit` says what is wrong with it
    changed = {name: value for name, value in new.items() if old.get(name) != value}
    changed |= {name: "" for name in old if name not in new}
    is_same = body.strip() == old_body.strip()
    if not changed and is_same:
        return None
    flags = ("--body=",) if not is_same and not body.strip() else ()
    head = [f"{name}: {value}".rstrip() for name, value in changed.items()]
    head = head or [f"title: {new.get('title', '')}"]  # a block without a head is none
    text = "" if is_same else body.strip("\n")
    return TextChanges(block="\n".join([FENCE, *head, FENCE, text, ""]), flags=flags)


def _parted(text: str) -> tuple[Mapping[str, str], str]:
    """The fields of the head, and the text after it; no fields if there is no head."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != FENCE:
        return {}, text
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == FENCE:
            pairs = (one.partition(":") for one in lines[1:number] if one.strip())
            head = {name.strip(): value.strip() for name, _, value in pairs}
            return head, "\n".join(lines[number + 1 :])
    return {}, text


def whole_task(item: TaskItem, status: str) -> str:
    """Everything that people wrote about the task, without control characters."""
    return plain("\n".join(_whole(item, status))).rstrip() + "\n"


def _whole(item: TaskItem, status: str) -> Iterator[str]:
    yield f"{item.id} {item.title}"
    yield f"status: {status}"
    for name, value in list(_fields(item).items())[1:]:
        if value:
            yield f"{name}: {value}"
    if item.body.strip():
        yield from ("", item.body.strip("\n"))
    for comment in item.comments:
        yield from ("", f"{comment.author}: {comment.text}")
