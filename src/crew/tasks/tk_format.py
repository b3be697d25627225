"""Parses the text of a `tk` ticket into a `TaskItem`, and creates and edits such texts.

A note begins with a line `**<moment>**`. If a text contains such a line itself, crew writes it with
one more backslash in front and reads it with one less.
"""

import json
import re
from dataclasses import replace

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import DEFAULT_PRIORITY, Comment, TaskItem
from crew.domain.rows.terms import read_terms
from crew.tasks import front_matter, json_text, timestamps
from crew.tasks.front_matter import FrontMatter
from crew.tasks.task_source import Lifecycle, NewComment, NewTask, TaskChanges

WORD_FOR = {
    TaskState.TODO: "open",
    TaskState.IN_PROGRESS: "in_progress",
    TaskState.DONE: "in_progress",
    TaskState.ERROR: "in_progress",
    TaskState.MERGED: "closed",
    TaskState.CLOSED: "closed",
}
"""`tk` has three states. `crew-status` holds crew's own state as long as both agree."""
_STATE_FOR = {
    "open": TaskState.TODO,
    "in_progress": TaskState.IN_PROGRESS,
    "closed": TaskState.CLOSED,
}
_STAMP = r"\*\*\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\*\*"
_NOTE = re.compile(rf"^({_STAMP})$", re.MULTILINE)
_LOOKS_LIKE_NOTE = re.compile(rf"^(\\*{_STAMP})$", re.MULTILINE)
_ESCAPED = re.compile(rf"^\\(\\*{_STAMP})$", re.MULTILINE)
_TITLE = re.compile(r"^# (.*)$", re.MULTILINE)
_NOTES_HEADING = re.compile(r"^## Notes[^\n]*$", re.MULTILINE)
_KEY = re.compile(r"\n*<!-- crew: (\S+) -->\Z")
_NOT_IN_AUTHOR = re.compile(r"[\s:]+")
_AUTHOR = re.compile(r"@(\S+): ")


@frozen
class TicketContent:
    """The text after the front matter, in three raw parts that join to the same text."""

    head: str  # up to the end of the title's line
    body: str
    notes: str  # from the heading of the first note on


def cut(rest: str) -> TicketContent:
    title = _TITLE.search(rest)
    head_end = min(title.end() + 1, len(rest)) if title else 0
    body_end = _notes_start(rest, head_end)
    return TicketContent(head=rest[:head_end], body=rest[head_end:body_end], notes=rest[body_end:])


def _notes_start(rest: str, after: int) -> int:
    """Notes have a time and follow a heading. Free text below it belongs to the description."""
    heading = _NOTES_HEADING.search(rest, after)
    note = _NOTE.search(rest, heading.end()) if heading else None
    if not note:
        return len(rest)
    headings = list(_NOTES_HEADING.finditer(rest, after, note.start()))
    last = headings[-1]
    return note.start() if rest[last.end() : note.start()].strip() else last.start()


def read_item(task: str, text: str) -> TaskItem:
    """The task of a ticket. ValueError gives the reason if it cannot be read."""
    front = front_matter.parse(text)
    content = cut(front.rest)
    title = _TITLE.search(content.head)
    return TaskItem(
        id=task,
        title=(title[1].strip() if title else "") or "Untitled",
        body=_unescape(content.body).strip("\n").rstrip(),
        status=_status(front),
        priority=_priority(front),
        labels=front_matter.parse_list(front.get("tags") or ""),
        parent=_without_remark(front.get("parent")),
        deps=front_matter.parse_list(front.get("deps") or ""),
        agent=front.get("crew-agent") or None,
        base=front.get("crew-base") or None,
        issue=_issue(front),
        created=timestamps.from_text(front.get("created")),
        started=timestamps.from_text(front.get("crew-started")),
        review_count=_number(front.get("crew-review-count")) or 0,
        skip_review=_flag(front.get("crew-skip-review")),
        terms=read_terms(json_text.read_object(front.get("crew-terms") or "{}")),
        comments=comments(content.notes),
    )


def _status(front: FrontMatter) -> TaskState:
    word = front.get("status") or ""
    if word not in _STATE_FOR:
        raise ValueError(f"the status {word!r} is none of {', '.join(_STATE_FOR)}")
    ours = front.get("crew-status") or ""
    if ours in set(TaskState) and WORD_FOR[TaskState(ours)] == word:
        return TaskState(ours)
    return _STATE_FOR[word]


def _priority(front: FrontMatter) -> int:
    priority = _number(front.get("priority"))
    return priority if priority is not None and priority <= 4 else DEFAULT_PRIORITY


def _issue(front: FrontMatter) -> int | None:
    reference = front.get("external-ref") or ""
    return _number(reference.removeprefix("gh-")) if reference.startswith("gh-") else None


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() else None


def _flag(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get(text or "")


def _without_remark(parent: str | None) -> str | None:
    return (parent or "").partition(" #")[0].strip() or None


def comments(notes: str) -> tuple[Comment, ...]:
    parts = _NOTE.split(notes)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return tuple(_comment(index, stamp, text) for index, (stamp, text) in enumerate(pairs))


def _comment(index: int, stamp: str, text: str) -> Comment:
    text = text.strip("\n").rstrip()
    key = _KEY.search(text)
    if key:
        text = text[: key.start()]
    author = _AUTHOR.match(text)
    return Comment(
        index=index,
        author=author[1] if author else "",
        text=_unescape(text[author.end() :] if author else text),
        at=timestamps.from_text(stamp.strip("*")),
        key=key[1] if key else "",
    )


def with_note(rest: str, comment: NewComment) -> str:
    """Add the note at the end, as `tk add-note` does. The first one gets a heading."""
    start = "" if not rest or rest.endswith("\n") else "\n"
    heading = "" if cut(rest).notes else "\n## Notes\n"
    author = f"@{_NOT_IN_AUTHOR.sub('-', comment.author)}: " if comment.author else ""
    key = f"\n\n<!-- crew: {comment.key} -->" if comment.key else ""
    note = f"\n**{timestamps.to_text(comment.at)}**\n\n{author}{_escape(comment.text)}{key}\n"
    return rest + start + heading + note


def new_ticket(task: str, new: NewTask, *, at: float) -> str:
    """The fields in `tk`'s own order, then the fields that `tk` does not have."""
    fields = {
        "id": task,
        "status": "open",
        "deps": front_matter.inline_list(new.deps),
        "links": "[]",
        "created": timestamps.to_text(at),
        "type": "task",
        "priority": str(new.priority),
        "external-ref": f"gh-{new.issue}" if new.issue else "",
        "parent": new.parent or "",
        "tags": front_matter.inline_list(new.labels) if new.labels else "",
        "crew-agent": new.agent or "",
        "crew-base": new.base or "",
        "crew-skip-review": _flag_text(new.skip_review),
        "crew-terms": json.dumps(dict(new.terms)) if new.terms else "",
    }
    lines = tuple(f"{key}: {value}" for key, value in fields.items() if value)
    body = f"{_escape(new.body)}\n\n" if new.body else ""
    return FrontMatter(lines=lines, rest=f"# {new.title}\n\n{body}").text()


def changed(front: FrontMatter, changes: TaskChanges) -> FrontMatter:
    if changes.title is not None or changes.body is not None:
        front = front.with_rest(_changed_rest(front.rest, changes))
    if changes.labels is not None:
        tags = front_matter.inline_list(changes.labels) if changes.labels else ""
        front = set_or_remove(front, "tags", tags)
    if changes.priority is not None:
        front = front.with_value("priority", str(changes.priority))
    if changes.issue is not None:
        front = set_or_remove(front, "external-ref", f"gh-{changes.issue}" if changes.issue else "")
    if changes.skip_review is not None:
        front = front.with_value("crew-skip-review", _flag_text(changes.skip_review))
    for key, value in (
        ("parent", changes.parent),
        ("crew-agent", changes.agent),
        ("crew-base", changes.base),
    ):
        if value is not None:
            front = set_or_remove(front, key, value)
    return front


def _changed_rest(rest: str, changes: TaskChanges) -> str:
    content = cut(rest)
    if changes.title is not None:
        old = _TITLE.search(content.head)
        lead = content.head[: old.start()] if old else ""
        content = replace(content, head=f"{lead}# {changes.title}\n")
    if changes.body is not None:
        body = f"\n{_escape(changes.body)}\n\n" if changes.body else "\n"
        content = replace(content, body=body)
    return content.head + content.body + content.notes


def with_status(
    front: FrontMatter, status: TaskState, *, at: float, lifecycle: Lifecycle
) -> FrontMatter:
    if _status(front) != status:
        front = front.with_value("status", WORD_FOR[status])
        is_plain = _STATE_FOR[WORD_FOR[status]] == status
        front = set_or_remove(front, "crew-status", "" if is_plain else str(status))
        if status == TaskState.IN_PROGRESS:
            front = front.with_value("crew-started", timestamps.to_text(at))
    if lifecycle.agent is not None:
        front = set_or_remove(front, "crew-agent", lifecycle.agent)
    if lifecycle.session is not None:
        front = set_or_remove(front, "crew-session", lifecycle.session)
    if lifecycle.review_count is not None:
        front = set_or_remove(front, "crew-review-count", str(lifecycle.review_count or ""))
    return front


def set_or_remove(front: FrontMatter, key: str, value: str) -> FrontMatter:
    return front.with_value(key, value) if value else front.without(key)


def _flag_text(value: bool | None) -> str:  # noqa: FBT001 - the value itself, not a switch
    return "" if value is None else str(value).lower()


def _escape(text: str) -> str:
    return _LOOKS_LIKE_NOTE.sub(r"\\\1", text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
