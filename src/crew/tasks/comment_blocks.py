"""Parses and edits the description and the comment blocks of a task file.

A description or comment may itself contain a line `---` followed by `# Comment:`, which would begin
the next comment block. crew writes such a `# Comment:` with one more backslash in front and reads
it with one less. Markdown shows it unchanged.
"""

import itertools
import re

from crew.domain.kernel.frozen import frozen
from crew.domain.rows.task_item import Comment
from crew.tasks import timestamps
from crew.tasks.task_source import NewComment

_FIRST_BLOCK = re.compile(r"(?:\A|\n\n)---\n# Comment: \d+\n")
_BLOCK = re.compile(r"(?:\A|\n)---\n(?=# Comment: \d+\n)")
_HEADER = re.compile(r"# (Comment|Author|Type|Tags|Metadata|Time):(.*)")
_LOOKS_LIKE_BLOCK = re.compile(r"(---\n)(\\*# Comment:)")
_ESCAPED = re.compile(r"(---\n)\\(\\*# Comment:)")


@frozen
class Content:
    """The text after the front matter, split at the first comment block. Both parts are raw."""

    lead: str
    body_raw: str
    blocks_raw: str

    @property
    def body(self) -> str:
        return unescape(self.body_raw).rstrip("\n")


def cut(rest: str) -> Content:
    text = rest.lstrip("\n")
    lead = rest[: len(rest) - len(text)]
    block = _FIRST_BLOCK.search(text)
    at = block.start() if block else len(text)
    return Content(lead=lead, body_raw=text[:at], blocks_raw=text[at:])


def with_body(rest: str, body: str) -> str:
    """Replace the description. The comment blocks stay unchanged."""
    blocks = cut(rest).blocks_raw
    if not blocks:
        return render_body(body)
    return "\n" + escape(body) + "\n\n" + blocks.lstrip("\n")


def render_body(body: str) -> str:
    return f"\n{escape(body)}\n" if body else "\n"


def with_comment(rest: str, comment: NewComment, *, index: int) -> str:
    """Add the comment as the last block. The text before it stays unchanged."""
    head = [f"# Comment: {index}", f"# Author: {comment.author}"]
    head += [f"# Type: {comment.kind}"] if comment.kind else []
    head += [f"# Tags: {', '.join(comment.tags)}"] if comment.tags else []
    head += [f"# Metadata: key={comment.key}"] if comment.key else []
    head += [f"# Time: {timestamps.to_text(comment.at)}"]
    gap = "\n" if rest.endswith("\n") else "\n\n"
    return rest + gap + "---\n" + "\n".join(head) + "\n\n" + escape(comment.text) + "\n"


def with_text(rest: str, index: int, text: str) -> str:
    """Replace the text of one comment. Its head and everything else stay unchanged."""
    raw = cut(rest).blocks_raw
    before = rest[: len(rest) - len(raw)]
    fences = list(_BLOCK.finditer(raw))
    start = fences[index].end()
    end = fences[index + 1].start() if index + 1 < len(fences) else len(raw)
    block = "\n".join(_head(raw[start:end].split("\n"))) + "\n\n" + escape(text) + "\n"
    return before + raw[:start] + block + raw[end:]


def comments(content: Content) -> tuple[Comment, ...]:
    blocks = _BLOCK.split(content.blocks_raw)[1:]
    return tuple(_comment(block, index) for index, block in enumerate(blocks))


def _comment(block: str, index: int) -> Comment:
    lines = block.split("\n")
    headers = _head(lines)
    head = {h[1]: h[2].strip() for line in headers if (h := _HEADER.fullmatch(line))}
    lines = lines[len(headers) :]
    return Comment(
        index=index,
        author=head.get("Author", ""),
        kind=head.get("Type", ""),
        text=unescape("\n".join(lines)).strip("\n").rstrip(),
        at=timestamps.from_text(head.get("Time")),
        key=_metadata(head.get("Metadata", "")).get("key", ""),
    )


def _head(lines: list[str]) -> list[str]:
    return list(itertools.takewhile(_HEADER.fullmatch, lines))


def _metadata(value: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in value.split(","))
    return {name: text for name, equals, text in pairs if equals}


def escape(text: str) -> str:
    return _LOOKS_LIKE_BLOCK.sub(r"\1\\\2", text)


def unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1\2", text)
