"""Fills a task draft from a GitHub issue."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path

from crew.front.cli.tasks.drafts import TaskDraft
from crew.tasks.github import Issue, fetch_issue

_NOT_IN_LABELS = str.maketrans(dict.fromkeys(",[]", " "))


def with_issue(draft: TaskDraft, repo_root: Path) -> TaskDraft:
    """The draft with the title, text and labels of its issue; its own title and text come first."""
    assert draft.issue is not None
    issue = asyncio.run(fetch_issue(draft.issue, repo_root=repo_root, caller=os.environ))
    return replace(
        draft,
        title=draft.title or issue.title,
        body=draft.body or issue.body,
        labels=tuple(dict.fromkeys((*draft.labels, *_labels(issue)))),
    )


def _labels(issue: Issue) -> tuple[str, ...]:
    """The issue's labels, without characters that a task file cannot hold."""
    words = (" ".join(label.translate(_NOT_IN_LABELS).split()) for label in issue.labels)
    return tuple(word for word in words if word)
