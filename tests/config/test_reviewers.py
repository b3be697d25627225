"""The reviewers that a configuration names: one, or with `claudex` never fewer than two."""

import pytest

from crew.config.layers.layers import merged_settings, read_layer
from crew.workplace import _reviewers


def reviewers(text):
    return _reviewers(merged_settings((read_layer("config.toml", text.encode()),)))


BOTH = ("claude-reviewer", "codex-reviewer")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[review]\nmode = "claudex"', BOTH),
        ('[review]\nmode = "claudex"\nagent = ["codex-reviewer"]', BOTH[::-1]),
        (
            '[review]\nmode = "claudex"\n[agents]\nreviewer_default = "gemini-reviewer"',
            ("gemini-reviewer", "claude-reviewer"),
        ),
        (
            '[review]\nmode = "claudex"\nagent = ["opencode-reviewer", "gemini-reviewer"]',
            ("opencode-reviewer", "gemini-reviewer"),
        ),
        ('[review]\nmode = "claudex"\nagent = ["codex-reviewer", "codex-reviewer"]', BOTH[::-1]),
        ('[review]\nmode = "single"', BOTH[:1]),
        ('[review]\nmode = "none"', ()),
    ],
)
def test_the_two_reviewers_of_claudex_are_named_or_the_defaults(text, expected):
    assert reviewers(text) == expected
