"""Parses the files of a task into a `TaskItem`, and creates and edits their texts."""

from collections.abc import Mapping
from typing import Any

from crew.domain.rows.task import TaskState
from crew.domain.rows.task_item import DEFAULT_PRIORITY, TaskItem
from crew.domain.rows.terms import Terms, read_terms
from crew.tasks import comment_blocks, front_matter, json_text, timestamps
from crew.tasks.front_matter import FrontMatter
from crew.tasks.task_source import NewComment, NewTask, TaskChanges

SCHEMA = 1
STATUS_VERSION = 2
_REQUIRED = frozenset({"schema", "status", "created", "base_branch", "status_version"})
_OLD_STATUS = {
    "needs_input": TaskState.IN_PROGRESS,
    "stopped": TaskState.IN_PROGRESS,
    "for_review": TaskState.IN_PROGRESS,
    "in_review": TaskState.IN_PROGRESS,
    "reviewing": TaskState.IN_PROGRESS,
    "needs_changes": TaskState.IN_PROGRESS,
    "reviewed": TaskState.DONE,
    "done": TaskState.CLOSED,
}
"""The current meaning of words from older status models of the original."""


def read_item(task: str, *, markdown: str, meta: str | None, extras: str | None) -> TaskItem:
    """The task of these texts. ValueError names the unreadable file and the reason."""
    try:
        front = front_matter.parse(markdown)
        content = comment_blocks.cut(front.rest)
        fields = _front_fields(front)
    except ValueError as error:
        raise ValueError(f"{task}.md: {error}") from error
    try:
        fields |= _meta_fields(meta)
    except ValueError as error:
        raise ValueError(f"{task}.meta.json: {error}") from error
    try:
        fields |= extra_fields(front, extras)
    except ValueError as error:
        raise ValueError(f"{task}.crew.json: {error}") from error
    return TaskItem(id=task, body=content.body, comments=comment_blocks.comments(content), **fields)


def _front_fields(front: FrontMatter) -> dict[str, Any]:
    title = front.get("title")
    if not title:
        raise ValueError("the front matter has no title")
    parent = front.get("parent") or "0"
    if not is_number(parent) and parent != "0":
        raise ValueError(f"the parent {parent!r} is not a number")
    return {
        "title": title,
        "parent": None if parent == "0" else parent,
        "labels": front_matter.parse_list(front.get("labels") or ""),
        "skip_review": _flag(front.get("skip_review") or ""),
    }


def _flag(value: str) -> bool | None:
    if not value:
        return None
    if value.lower() not in {"true", "false"}:
        raise ValueError(f"skip_review is {value!r}, neither true nor false")
    return value.lower() == "true"


def _meta_fields(meta: str | None) -> dict[str, Any]:
    if meta is None:
        raise ValueError("the file is missing")
    fields = json_text.read_object(meta)
    if fields.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {fields.get('schema')!r}, this crew knows {SCHEMA}")
    return {
        "status": _status(fields),
        "agent": _text(fields, "agent"),
        "base": _text(fields, "base_branch"),
        "issue": _count(fields, "issue") or None,
        "created": timestamps.from_text(fields.get("created")),
        "started": timestamps.from_text(fields.get("started")),
        "review_count": _count(fields, "review_count"),
    }


def _status(fields: Mapping[str, Any]) -> TaskState:
    word = str(fields.get("status"))
    version = _count(fields, "status_version")
    if version < STATUS_VERSION and word in _OLD_STATUS:
        return _OLD_STATUS[word]
    if version < STATUS_VERSION and fields.get("close_reason") == "merged":
        return TaskState.MERGED
    try:
        return TaskState(word)
    except ValueError:
        raise ValueError(f"the status {word!r} is unknown") from None


def _text(fields: Mapping[str, Any], key: str) -> str | None:
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return value or None


def _count(fields: Mapping[str, Any], key: str) -> int:
    value = fields.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"{key} is not a number of at least 0")
    return value


def extra_fields(front: FrontMatter, extras: str | None) -> dict[str, Any]:
    """Dependencies, priority and terms. A line in the front matter wins."""
    extra_fields = json_text.read_object(extras) if extras is not None else {}
    deps = extra_fields.get("deps", [])
    if (line := front.get("deps")) is not None:
        deps = [dep.removeprefix("#") for dep in front_matter.parse_list(line)]
    priority = front.get("priority") or extra_fields.get("priority", DEFAULT_PRIORITY)
    if not isinstance(deps, list) or not all(isinstance(dep, str) for dep in deps):
        raise ValueError("deps is not a list of ids")
    if str(priority) not in {"0", "1", "2", "3", "4"}:
        raise ValueError(f"the priority {priority!r} is not a number from 0 to 4")
    terms = read_terms(extra_fields.get("terms", {}))
    return {"deps": tuple(dict.fromkeys(deps)), "priority": int(priority), "terms": terms}


def new_markdown(new: NewTask) -> str:
    front = FrontMatter(lines=(), rest=comment_blocks.render_body(new.body))
    front = front.with_value("title", new.title).with_value("parent", new.parent or "")
    front = front.with_value("labels", ", ".join(new.labels))
    return front.with_value("skip_review", _flag_text(new.skip_review)).text()


def new_meta(new: NewTask, *, at: float) -> str:
    return json_text.dump(
        {
            "schema": SCHEMA,
            "status": str(TaskState.TODO),
            "created": timestamps.to_text(at),
            "base_branch": new.base or "",
            "status_version": STATUS_VERSION,
            "agent": new.agent,
            "issue": new.issue,
        }
    )


def new_extras(*, deps: tuple[str, ...], priority: int, terms: Terms = ()) -> str:
    fields = {"schema": SCHEMA, "deps": list(deps), "priority": priority}
    return json_text.dump({**fields, "terms": dict(terms) or None})


def texts_of(item: TaskItem) -> dict[str, str]:
    """The files of a task by their names, the `.md` last: what was read of it, written again."""
    new = NewTask(
        title=item.title,
        body=item.body,
        labels=item.labels,
        parent=item.parent,
        agent=item.agent,
        base=item.base,
        issue=item.issue,
        skip_review=item.skip_review,
    )
    front = front_matter.parse(new_markdown(new))
    for number, one in enumerate(item.comments):
        comment = NewComment(
            author=one.author, text=one.text, at=one.at or 0.0, kind=one.kind, key=one.key
        )
        rest = comment_blocks.with_comment(front.rest, comment, index=number)
        front = front.with_rest(rest)
    lifecycle = {
        "status": str(item.status),
        "started": timestamps.to_text(item.started) if item.started else None,
        "review_count": item.review_count,
    }
    meta = changed_meta(new_meta(new, at=item.created or 0.0), lifecycle)
    extras = new_extras(deps=item.deps, priority=item.priority, terms=item.terms)
    has_extras = item.deps or item.terms or item.priority != DEFAULT_PRIORITY
    return {
        **({f"{item.id}.crew.json": extras} if has_extras else {}),
        f"{item.id}.meta.json": meta,
        f"{item.id}.md": front.text(),
    }


def changed_markdown(markdown: str, changes: TaskChanges) -> str:
    front = front_matter.parse(markdown)
    if changes.title is not None:
        front = front.with_value("title", changes.title)
    if changes.parent is not None:
        front = front.with_value("parent", changes.parent)
    if changes.labels is not None:
        front = front.with_value("labels", ", ".join(changes.labels))
    if changes.skip_review is not None:
        front = front.with_value("skip_review", _flag_text(changes.skip_review))
    if changes.body is not None:
        front = front.with_rest(comment_blocks.with_body(front.rest, changes.body))
    return front.text()


def changed_meta(meta: str, fields: Mapping[str, Any]) -> str:
    """None keeps a field. An empty text or 0 removes it, unless the field is required."""
    changes = {key: value for key, value in fields.items() if value is not None}
    for key, value in changes.items():
        if not value and key not in _REQUIRED:
            changes[key] = None
    return json_text.with_fields(meta, changes)


def _flag_text(value: bool | None) -> str:  # noqa: FBT001 - the value itself, not a switch
    return "" if value is None else str(value).lower()


def is_number(task: str) -> bool:
    """Whether this is an id: a number of at least 1, without leading zeros."""
    return task.isascii() and task.isdigit() and task[0] != "0"
