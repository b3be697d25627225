"""What a merge loses of its sides, as a table of files; each line is a base and three versions."""

import time

import pytest

from crew.domain.runs.lost_sides import (
    MOST_FILES,
    MOST_LINES,
    MOST_SHOWN,
    LostSide,
    Versions,
    lost_sides,
    words_of,
)

TASK, LANDED = "task", "landed"
GONE = None
IMAGE, OTHER_IMAGE, THIRD_IMAGE = "\0one", "\0two", "\0three"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.replace("|", "\n").encode()


def _versions(base, ours, theirs, result) -> Versions:
    return Versions(base=base, ours=ours, theirs=theirs, result=result)


def judged(files: dict[str, tuple[str | None, ...]]) -> set[tuple[str, ...]]:
    found = lost_sides({path: _versions(*map(_bytes, texts)) for path, texts in files.items()})
    return {(one.path, one.side, one.loss, *one.lines) for one in found}


KEPT = {
    "both sides add the same line, and the result is the larger side": ("", "a|", "a|b|", "a|b|"),
    "the smaller side landed": ("", "a|b|", "a|", "a|b|"),
    "both add different lines": ("x|", "x|a|", "x|b|", "x|a|b|"),
    "the other order of the two": ("x|", "x|a|", "x|b|", "x|b|a|"),
    "one side is contained in the other": ("x|y|", "x|a|y|", "x|a|b|y|", "x|a|b|y|"),
    "both sides remove the same line": ("x|y|z|", "x|z|", "x|z|w|", "x|z|w|"),
    "both make the same change": ("x|y|", "x|Y|", "x|Y|", "x|Y|"),
    "one deletes a part, the other adds elsewhere": ("a|b|c|d|", "a|d|", "a|b|c|d|e|", "a|d|e|"),
    "a line is indented more": ("f()|", "f()|g()|", "if x:|  f()|", "if x:|  f()|  g()|"),
    "the landed lines are indented by the task": (
        "run()|",
        "if x:|    run()|",
        "run()|stop()|",
        "if x:|    run()|    stop()|",
    ),
    "white space at the end of lines": ("x|", "x  |a|", "x|b|", "x|a|b|"),
    "ends of lines": ("x|y|", "x\r|y\r|", "x|y|z|", "x\r|y\r|z\r|"),
    "the last line has no end": ("x", "x|a", "x|b", "x|a|b"),
    "a function moves while the other side changes it": (
        "def f|one|two|def g|three|",
        "def g|three|def f|one|two|",
        "def f|one|2|def g|three|",
        "def g|three|def f|one|2|",
    ),
    "one side sorts the list, the other adds to it": ("c|a|", "a|c|", "c|a|b|", "a|b|c|"),
    "both changed one line, and a third brings them together": (
        "limit = 1|",
        "limit = size(1)|",
        "limit = 1 + extra|",
        "limit = size(1) + extra|",
    ),
    "two numbers become a third": ("n = 1|", "n = 2|", "n = 3|", "n = 5|"),
    "both rewrote one statement, and the result is new": (
        "return a|",
        "return find(a)|",
        "raise Missing|",
        "return find(a) or fail()|",
    ),
    "a landed line follows a name that the task changed": (
        "def foo():|    pass|",
        "def bar():|    pass|",
        "def foo():|    pass|x = foo(1, 2)|",
        "def bar():|    pass|x = bar(1, 2)|",
    ),
    "both added a file with different content": (GONE, "a|", "b|", "a|b|"),
    "both added one record, and the result has both in one line": (
        GONE,
        '{"a": 1}|',
        '{"b": 2}|',
        '{"a": 1, "b": 2}|',
    ),
    "one changed and the other deleted it: it stays changed": ("a|b|", "a|B|", GONE, "a|B|"),
    "a changed line in a part that the other removed stays": (
        "a|b|c|d|",
        "a|B|c|d|",
        "d|",
        "a|B|c|d|",
    ),
    "both deleted it": ("a|", GONE, GONE, GONE),
    "a binary file is the task's": (IMAGE, OTHER_IMAGE, THIRD_IMAGE, OTHER_IMAGE),
    "a binary file is the landed one": (IMAGE, OTHER_IMAGE, THIRD_IMAGE, THIRD_IMAGE),
    "the task reworks its own file": ("a|", "b|", "a|", "c|"),
    "the task drops a part of its own file": ("a|", "a|b|c|", "a|", "a|b|"),
    "brackets are shared": ("", "f {|a|}|", "g {|b|}|", "f {|a|}|g {|b|}|"),
    "brackets became fewer": ("", "f(|a|)|", "g(|b|)|", "f(|a|g(|b|)|"),
    "a repeated line that went with its function is in new code": (
        "def f|one|return x|def g|two|return x|",
        "def f|one|return x|def g|two|return x|",
        "def f|one|return x|",
        "def f|one|return x|def h|three|return x|",
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_merge_that_keeps_both_sides_passes(case):
    base, ours, theirs, result = KEPT[case]
    assert judged({"f": (base, ours, theirs, result)}) == set()
    if "task" not in case:
        assert judged({"f": (base, theirs, ours, result)}) == set()


LOST = {
    "the landed file is as it was": (("x|", "x|", "x|a|", "x|"), {(LANDED, "missing", "a")}),
    "the landed file is not there": ((GONE, GONE, "a|", GONE), {(LANDED, "missing", "a")}),
    "an empty landed file is not there": ((GONE, GONE, "", GONE), {(LANDED, "missing")}),
    "the deleted file is there again": (("x|", "x|", GONE, "x|"), {(LANDED, "back", "x")}),
    "an empty deleted file is there again": (("", "", GONE, ""), {(LANDED, "back")}),
    "all of the task's own file": (("x|", "x|a|", "x|", "x|"), {(TASK, "missing", "a")}),
    "only the task's side": (("x|", "x|a|", "x|b|", "x|a|"), {(LANDED, "missing", "b")}),
    "only the landed side": (("x|", "x|a|", "x|b|", "x|b|"), {(TASK, "missing", "a")}),
    "a part of the landed side": (
        ("x|", "x|a|", "x|b|c|", "x|a|b|"),
        {(LANDED, "missing", "c")},
    ),
    "both sides": (
        ("x|", "x|a|", "x|b|", "x|"),
        {(TASK, "missing", "a"), (LANDED, "missing", "b")},
    ),
    "a line that was added twice is there once": (
        ("x|", "x|a|", "x|b|b|", "x|a|b|"),
        {(LANDED, "missing", "b")},
    ),
    "both added a line, at two places": (
        ("x|y|z|", "a|x|y|z|", "x|y|z|a|", "a|x|y|z|"),
        {(LANDED, "missing", "a")},
    ),
    "a removed line is there again": (
        ("x|y|z|", "x|y|z|a|", "x|z|", "x|y|z|a|"),
        {(LANDED, "back", "y")},
    ),
    "the old line stands beside the new one": (
        ("v = 1|x|", "v = 1|x|a|", "v = 2|x|", "v = 1|v = 2|x|a|"),
        {(LANDED, "back", "v = 1")},
    ),
    "the order is not that of the side": (
        ("x|", "x|a|", "x|b|c|", "x|a|c|b|"),
        {(LANDED, "order", "c")},
    ),
    "what was moved is back": (
        ("p|q|r|", "p|q|r|a|", "q|r|p|", "p|q|r|a|"),
        {(LANDED, "order", "q", "r", "p")},
    ),
    "one of two changes of a line": (
        ("n = 1|", "n = 2|", "n = 3|", "n = 2|"),
        {(LANDED, "missing", "n = 3")},
    ),
    "both changes of a line": (
        ("n = 1|", "n = 2|", "n = 3|", "n = 1|"),
        {
            (TASK, "missing", "n = 2"),
            (TASK, "back", "n = 1"),
            (LANDED, "missing", "n = 3"),
            (LANDED, "back", "n = 1"),
        },
    ),
    "new lines that have nothing of those in whose place they are": (
        ("x|", "x|a|", "x|def far(away):|", "x|a|unrelated|"),
        {(LANDED, "missing", "def far(away):")},
    ),
    "one new line for many": (
        ("x = 1|", "x = 2|", "x = 3|y = 4|z = 5|w = 6|", "x = 2|import q|"),
        {(LANDED, "missing", "x = 3", "y = 4", "z = 5", "w = 6")},
    ),
    "both added the file, and it is the task's": (
        (GONE, "a|", "b|", "a|"),
        {(LANDED, "missing", "b")},
    ),
    "a changed file is deleted": (("a|b|", GONE, "a|B|", GONE), {(LANDED, "missing", "B")}),
    "brackets alone": (("", "", "}|", ""), {(LANDED, "missing", "}")}),
    "a landed image is as it was": ((IMAGE, IMAGE, OTHER_IMAGE, IMAGE), {(LANDED, "binary")}),
    "an image that is of no side": (
        (IMAGE, OTHER_IMAGE, THIRD_IMAGE, "\0four"),
        {(TASK, "binary"), (LANDED, "binary")},
    ),
    "words that are not ASCII": (("x|", "x|", "x|größe|", "x|"), {(LANDED, "missing", "größe")}),
}


@pytest.mark.parametrize("case", LOST)
def test_a_merge_that_loses_something_is_told_by_side_and_line(case):
    texts, expected = LOST[case]
    assert judged({"f": texts}) == {("f", *one) for one in expected}


ELSEWHERE = {
    "the other side renamed it": {
        "f": ("a|b|c|", "a|B|c|", GONE, GONE),
        "g": (GONE, GONE, "a|b|c|", "a|B|c|"),
    },
    "both renamed it": {
        "f": ("a|b|", GONE, GONE, GONE),
        "g": (GONE, "a|b|", GONE, GONE),
        "h": (GONE, GONE, "a|b|", "a|b|"),
    },
    "the result moved the lines to a file of its own": {
        "f": ("x|", "x|a|", "x|b|", "x|a|"),
        "g": (GONE, GONE, GONE, "b|"),
    },
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_lines_that_are_in_another_file_now_are_not_lost(case):
    assert judged(ELSEWHERE[case]) == set()


def test_a_rename_that_is_undone_is_told():
    found = judged({"f": ("a|b|", "a|b|", GONE, "a|b|"), "g": (GONE, GONE, "a|b|", GONE)})
    assert found == {("f", LANDED, "back", "a", "b")}


def test_what_is_shown_is_limited():
    many = "".join(f"line {n}|" for n in range(50))
    (found,) = lost_sides({"f": _versions(b"", b"", _bytes(f"{'x' * 999}|{many}"), b"")})
    assert isinstance(found, LostSide)
    assert (len(found.lines), found.count) == (MOST_SHOWN, 51)
    assert max(map(len, found.lines)) < 200


def _numbered(count: int) -> list[str]:
    return [f"line {n} {n % 7}" for n in range(count)]


LARGE = {
    "few changes": lambda n: (_numbered(n), n // 3, n // 2),
    "the same line again and again": lambda n: (["same"] * n, n // 3, n // 2),
    "few different lines": lambda n: ([f"line {k % 5}" for k in range(n)], n // 3, n // 2),
}


@pytest.mark.parametrize("case", LARGE)
@pytest.mark.parametrize("count", [MOST_LINES // 5, MOST_LINES])
def test_a_large_file_is_judged_in_reasonable_time(case, count):
    lines, one, two = LARGE[case](count)
    ours, theirs = list(lines), list(lines)
    ours[one : one + 10] = [f"task {n}" for n in range(300)]
    theirs[two : two + 10] = [f"landed {n}" for n in range(300)]
    merged = list(ours)
    merged[two + 290 : two + 300] = theirs[two : two + 300]
    texts = ["\n".join(one).encode() for one in (lines, ours, theirs, merged, ours)]
    began = time.process_time()
    assert lost_sides({"f": _versions(*texts[:4])}) == ()
    (lost, *_) = lost_sides({"f": _versions(*texts[:3], texts[4])})
    assert (lost.side, lost.loss, lost.count) == (LANDED, "missing", 300)
    assert time.process_time() - began < 20


def test_versions_with_nothing_in_common_are_judged_in_reasonable_time():
    words = ["a", "b", "c", "d"]
    texts = [
        "\n".join(words[(n * step + n // 9) % 4] for n in range(20_000)).encode()
        for step in (1, 2, 3, 5)
    ]
    began = time.process_time()
    lost_sides({"f": _versions(*texts)})
    assert time.process_time() - began < 20


def test_lines_that_repeat_in_another_rhythm_are_compared_one_by_one():
    base, theirs = "a|b|a|b|c|c|", "b|a|a|c|b|c|x|"
    assert judged({"f": (base, base, theirs, base)}) == {("f", LANDED, "missing", "x")}


def test_of_many_files_the_first_are_told():
    lost = lost_sides({f"f{n}": _versions(b"", b"", b"x", b"") for n in range(MOST_FILES + 2)})
    words = words_of(lost)
    assert "> f0" in words
    assert "> (and 2 more files)" in words
    assert f"> f{MOST_FILES}" not in words


def test_two_lines_that_both_sides_add_at_two_places_stay_twice():
    lost = judged({"f": ("x|y|z|", "a|b|x|y|z|", "x|y|z|a|b|", "a|b|x|y|z|")})
    assert lost == {("f", LANDED, "missing", "a", "b")}


def test_whose_lines_are_lost_is_told():
    mine = lost_sides(
        {"f": _versions(b"x", b"x\na\nb", b"x", b"x"), "g": _versions(b"", None, b"", b"")}
    )
    words = words_of(mine)
    assert "2 lines of this task are missing:" in words
    assert "the file that this task removed is there again" in words
