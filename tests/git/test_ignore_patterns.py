"""Patterns of what a gate keeps name the same paths as git's own."""

import itertools

import pytest

from crew.git.gate_folders.ignore_patterns import is_named
from git.people import Person

PATTERNS = [
    *("cache", "/cache", "cache/", "/cache/", "sub/cache", "/sub/cache/", "cach", "CACHE"),
    *("*.tmp", "*", "/*", "*/x.tmp", "sub/*", "sub/**", "**/cache", "**/x.tmp", "sub/**/x.tmp"),
    *("a?c", "c*e", "*.t[mn]p", "*.t[!m]p", "*.t[^m]p", "[[:alpha:]]*", "[a-c]ache", "[]x]*"),
    *(r"\*", r"\[x]", "x[", "x\\", "é", "?", "??", "[z-a]ache", "[[:none:]]*", "a/b/c", "a/*/c"),
    *("**", "a/**/c", "a**", "***/c", "x.*", "[*]", "a[-b]c", "a[b-]c", "#x", "with space", r"\!x"),
    *("", "/", "!", "./cache", "cache//", "[a-c-x]ache", r"[\]]", r"[\\]", "sub[/]cache"),
]
FILES = [
    *("cache", "sub/cache/y", "x.tmp", "sub/x.tmp", "sub/deep/x.tmp", "sub/deep/cache/x", "abc"),
    *("a/b/c", "a/c", "a/x/y/c", "*", "[x]", "x[", "x\\", "é", "q", "x.tnp", "]", "a-c", "#x"),
    *("with space", "!x", "\\", "xache", "cacheé", "ü/cache", "two\nlines"),
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Asks git which of the files are excluded by these patterns alone."""
    person = Person(tmp_path_factory.mktemp("asked"))
    person.git("init", "-q")
    for file in FILES:
        person.write(file, "x")

    def kept(patterns):
        options = itertools.chain.from_iterable(("-x", pattern) for pattern in patterns)
        gone = person.git("ls-files", "-z", "--others", *options)
        return set(FILES) - set(gone.split("\0"))

    return kept


def named(patterns):
    return {file for file in FILES if _is_below_named(file, tuple(patterns))}


def _is_below_named(file, patterns):
    parts = file.split("/")
    above = ("/".join(parts[:count]) for count in range(1, len(parts)))
    is_inside = any(is_named(folder, patterns, is_folder=True) for folder in above)
    return is_inside or is_named(file, patterns, is_folder=False)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_names_the_same_files_as_git_s(asked, pattern):
    assert named([pattern]) == asked([pattern])


@pytest.mark.parametrize(
    "patterns",
    [
        ("*.tmp", "!sub/x.tmp"),
        ("!x.tmp", "*.tmp"),
        ("cache", "!cache"),
        ("sub", "!sub/x.tmp"),
        ("sub/*", "!sub/deep/", "sub/deep/cache"),
        (),
    ],
)
def test_the_last_pattern_that_matches_decides(asked, patterns):
    assert named(patterns) == asked(patterns)
