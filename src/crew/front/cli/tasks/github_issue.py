"""What an issue brings to a task that is made for it."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from crew.front.cli.tasks.drafts import TaskDraft
from crew.tasks.github import Issue, fetch_issue

_NOT_IN_LABELS = str.maketrans(dict.fromkeys(",[]", " "))


def with_issue(draft: TaskDraft, repo_root: Path) -> TaskDraft:
    """The draft with the words of its issue wherever it has none of its own."""
    assert draft.issue is not None
    issue = asyncio.run(fetch_issue(draft.issue, repo_root=repo_root, caller=os.environ))
    return replace(
        draft,
        title=draft.title or issue.title,
        body=draft.body or issue.body,
        labels=tuple(dict.fromkeys((*draft.labels, *_labels(issue)))),
    )


def _labels(issue: Issue) -> tuple[str, ...]:
    """In the shape that a task file can hold."""
    words = (" ".join(label.translate(_NOT_IN_LABELS).split()) for label in issue.labels)
    return tuple(word for word in words if word)
