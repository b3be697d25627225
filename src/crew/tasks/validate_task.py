"""Checks and normalises text from a person or an agent before it goes into a task file."""

import re
from dataclasses import replace

from crew.domain.kernel.errors import Conflict, UsageError
from crew.domain.kernel.names import task_id
from crew.domain.rows.task_item import TaskItem
from crew.tasks.task_source import NewComment, NewTask, TaskChanges

MAX_BODY_CHARS = 500_000
MAX_COMMENT_CHARS = 50_000
_LINE_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
_KEY = re.compile(r"[A-Za-z0-9_./:-]{1,200}")


def checked_task(new: NewTask) -> NewTask:
    return replace(
        new,
        title=_title(new.title),
        body=_body(new.body),
        priority=_priority(new.priority),
        labels=_labels(new.labels),
        parent=task_id(new.parent) if new.parent else None,
        deps=tuple(dict.fromkeys(task_id(dep) for dep in new.deps)),
        agent=one_line(new.agent) if new.agent else None,
        base=one_line(new.base) if new.base else None,
        issue=_issue(new.issue) if new.issue else None,
    )


def checked_changes(changes: TaskChanges) -> TaskChanges:
    return replace(
        changes,
        title=None if changes.title is None else _title(changes.title),
        body=None if changes.body is None else _body(changes.body),
        priority=None if changes.priority is None else _priority(changes.priority),
        labels=None if changes.labels is None else _labels(changes.labels),
        add_labels=_labels(changes.add_labels),
        remove_labels=tuple(one_line(label) for label in changes.remove_labels),
        parent=task_id(changes.parent) if changes.parent else changes.parent,
        agent=one_line(changes.agent) if changes.agent else changes.agent,
        base=one_line(changes.base) if changes.base else changes.base,
        issue=_issue(changes.issue) if changes.issue else changes.issue,
    )


def changes_for(item: TaskItem, changes: TaskChanges) -> TaskChanges:
    """Resolve the changes for the current state of this task. The caller holds the lock."""
    if changes.only_if and item.status not in changes.only_if:
        raise Conflict(
            f"task {item.id} is {item.status}, not {' or '.join(sorted(changes.only_if))}",
            hint=f"nothing was changed; `crew show {item.id}` shows it",
            code="other_status",
        )
    if not changes.add_labels and not changes.remove_labels:
        return changes
    labels = item.labels if changes.labels is None else changes.labels
    kept = [label for label in labels if label not in changes.remove_labels]
    return replace(changes, labels=tuple(dict.fromkeys((*kept, *changes.add_labels))))


def checked_comment(comment: NewComment) -> NewComment:
    text = checked_comment_text(comment.text)
    if comment.key and not _KEY.fullmatch(comment.key):
        raise UsageError(
            f"{comment.key!r} cannot be a comment's key",
            hint="use letters, digits and _ . / : - only",
        )
    return replace(
        comment,
        text=text,
        author=one_line(comment.author),
        kind=one_line(comment.kind),
        tags=_labels(comment.tags),
    )


def checked_comment_text(text: str) -> str:
    text = _plain(text).strip("\n").rstrip()
    if not text.strip():
        raise UsageError("a comment needs a text", hint='write it: crew comment ID "TEXT"')
    if len(text) > MAX_COMMENT_CHARS:
        text = text[:MAX_COMMENT_CHARS].rstrip() + "\n[cut]"
    return text


def one_line(text: str) -> str:
    return _LINE_BREAKS.sub(" ", _plain(text)).strip()


def _plain(text: str) -> str:
    """The text with uniform line ends, and without what a task file cannot hold.

    UTF-8 cannot encode some characters, and a file with a NUL is not read as text.
    """
    text = text.encode(errors="replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.replace("\r\n", "\n")


def _title(text: str) -> str:
    title = one_line(text)
    if not title:
        raise UsageError("a task needs a title", hint="give one with --title")
    return title


def _body(text: str) -> str:
    if len(text) > MAX_BODY_CHARS:
        raise UsageError(
            f"the text has {len(text)} characters, more than the {MAX_BODY_CHARS} a task may have",
            hint="put the material into a file of the repository and name that file",
        )
    return _plain(text).strip("\n").rstrip()


def _priority(value: int) -> int:
    if not 0 <= value <= 4:
        raise UsageError(f"{value} is not a priority", hint="0 is the most urgent, 4 the least")
    return value


def _labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    for label in labels:
        if not one_line(label) or set(label) & set(",[]"):
            raise UsageError(f"{label!r} cannot be a label", hint="write a label without , [ and ]")
    return tuple(dict.fromkeys(one_line(label) for label in labels))


def _issue(number: int) -> int:
    if number < 0:
        raise UsageError(f"{number} is not an issue's number", hint="give a number like 123")
    return number
