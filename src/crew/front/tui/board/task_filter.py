"""The filter of the board: words, `status:`, `label:`, `agent:`, `parent:`; all must match."""

from collections.abc import Callable, Mapping

from crew.domain.kernel.frozen import frozen

FIELDS = ("status", "label", "agent", "parent")


@frozen
class FilterSubject:
    """What a filter looks at in a task."""

    id: str
    title: str
    status: str
    labels: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    parent: str = ""


@frozen
class TaskFilter:
    """A parsed filter; `text` is what the person typed."""

    text: str = ""
    words: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()

    def matches(self, subject: FilterSubject) -> bool:
        heard = f"{subject.id} {subject.title}".casefold()
        if any(word not in heard for word in self.words):
            return False
        return all(_MATCHES[name](subject, value) for name, value in self.fields)


def parse_filter(text: str) -> TaskFilter:
    """Every word must be in the id or the title; `name:value` must match that field."""
    words: list[str] = []
    fields: list[tuple[str, str]] = []
    for word in text.casefold().split():
        name, colon, value = word.partition(":")
        if colon and name in FIELDS:
            fields.append((name, value))
        else:
            words.append(word)
    return TaskFilter(text=text.strip(), words=tuple(words), fields=tuple(fields))


def _status(subject: FilterSubject, value: str) -> bool:
    return subject.status.startswith(value.replace("-", "_"))


def _label(subject: FilterSubject, value: str) -> bool:
    return any(label.casefold().startswith(value) for label in subject.labels)


def _agent(subject: FilterSubject, value: str) -> bool:
    return any(agent.casefold().startswith(value) for agent in subject.agents)


_MATCHES: Mapping[str, Callable[[FilterSubject, str], bool]] = {
    "status": _status,
    "label": _label,
    "agent": _agent,
    "parent": lambda subject, value: subject.parent.casefold() == value,
}
