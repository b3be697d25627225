"""A diff as git prints it is read whatever is in it, and drawn without breaking a line."""

import subprocess
import time

import pytest
from rich.cells import cell_len

from crew.front.tui.diff.diff_colours import CodeColours, lexer_of
from crew.front.tui.diff.diff_lines import DiffPainter
from crew.front.tui.diff.diff_rows import anchor_at, diff_rows
from crew.front.tui.diff.diff_text import parse_diff, unquoted
from crew.front.tui.diff.line_comments import (
    Anchor,
    CommentBook,
    message_of,
    road_for,
)

TWO_HUNKS = """\
diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,3 @@
 one
-two
+TWO
 three
@@ -10,2 +10,3 @@ def f():
 ten
--- not a header
+++ neither
+more
"""


def shape(file):
    return [
        (line.kind, line.old, line.new, line.text) for hunk in file.hunks for line in hunk.lines
    ]


def test_hunks_have_their_numbers_and_lines_that_look_like_headers():
    (file,) = parse_diff(TWO_HUNKS)
    assert (file.path, file.what, file.added, file.removed) == ("src/a.py", "changed", 3, 2)
    assert [hunk.heading for hunk in file.hunks] == ["", "def f():"]
    assert shape(file) == [
        ("context", 1, 1, "one"),
        ("removed", 2, 0, "two"),
        ("added", 0, 2, "TWO"),
        ("context", 3, 3, "three"),
        ("context", 10, 10, "ten"),
        ("removed", 11, 0, "-- not a header"),
        ("added", 0, 11, "++ neither"),
        ("added", 0, 12, "more"),
    ]


def git(repo, *args):
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *args]
    return subprocess.run(run, cwd=repo, check=True, capture_output=True).stdout


@pytest.fixture
def real_diff(tmp_path):
    """What git prints between two states of a folder."""

    def made(before, after):
        for number, files in enumerate((before, after)):
            repo = tmp_path
            if not number:
                git(repo, "init", "-q")
            for old in before if number else ():
                if old not in files:
                    (repo / old).unlink()
            for name, content in files.items():
                (repo / name).parent.mkdir(parents=True, exist_ok=True)
                (repo / name).write_bytes(content)
            git(repo, "add", "-A")
            git(repo, "commit", "-q", "-m", "x")
        printed = git(repo, "diff-tree", "-r", "-p", "--find-renames", "HEAD~", "HEAD")
        return {file.path: file for file in parse_diff(printed.decode(errors="replace"))}

    return made


def test_what_git_prints_about_all_kinds_of_files(real_diff):
    long = b"".join(b"line %d\n" % number for number in range(50))
    names = ["with blank", 'quo"te', "ä ö", "new\nline", "tab\tname", "[red]", "a b b", "-x"]
    before = {
        "moved": long,
        "gone": b"x\n",
        "binary": b"\0\1\2",
        "windows": b"a\r\nb\r\n",
        "no-end": b"a\nb",
        **dict.fromkeys(names, b"1\n"),
    }
    after = {
        "moved here": long + b"more\n",
        "new": b"",
        "binary": b"\0\1\3",
        "windows": b"a\r\nc\r\n",
        "no-end": b"a\nB",
        **dict.fromkeys(names, b"2\n"),
    }
    found = real_diff(before, after)
    assert set(found) == set(after) | {"gone"}
    assert (found["moved here"].what, found["moved here"].old_path) == ("renamed", "moved")
    assert shape(found["moved here"])[-1] == ("added", 0, 51, "more")
    assert (found["gone"].what, found["gone"].removed) == ("deleted", 1)
    assert (found["new"].what, found["new"].hunks) == ("added", ())
    assert found["binary"].is_binary
    assert ("added", 0, 2, "c\r") in shape(found["windows"])
    assert [line[0] for line in shape(found["no-end"])] == [
        *("context", "removed", "note", "added", "note")
    ]
    assert all(found[name].added == found[name].removed == 1 for name in names)


def test_a_name_is_read_as_git_quotes_it():
    assert unquoted('"a/\\303\\244\\n\\"\\\\"') == 'a/ä\n"\\'
    assert unquoted("plain name\t") == "plain name"
    assert unquoted('"') == '"'


@pytest.mark.parametrize("cut", range(0, len(TWO_HUNKS), 7))
def test_a_diff_that_was_cut_anywhere_is_read(cut):
    files = parse_diff(TWO_HUNKS[:cut])
    rows = diff_rows(files, (), in_two_columns=True)
    painter = DiffPainter(files=files, colours=CodeColours(), in_two_columns=True)
    assert all(painter.line(row, 120) for row in rows)


HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "[red]markup[/red]",
    "\u202eevil",
    "日本語" * 40,
    "tab\tand \x07 bell \x1b]0;title\x07",
    "x" * 10_000_000,
    "one\rtwo",
    "\ufeffmark",
    '"""',
    "",
)


@pytest.mark.parametrize("width", [20, 64, 101, 250])
@pytest.mark.parametrize("in_two_columns", [False, True])
def test_hostile_lines_are_text_of_exactly_the_width(width, in_two_columns):
    lines = "\n".join(f"{sign}{text}" for sign in " -+" for text in HOSTILE)
    count = len(HOSTILE)
    head = f"diff --git a/[red].py b/[red].py\n@@ -1,{2 * count} +1,{2 * count} @@ \x1b[2J"
    files = parse_diff(f"{head}\n{lines}\n")
    painter = DiffPainter(files=files, colours=CodeColours(), in_two_columns=in_two_columns)
    rows = diff_rows(files, (), in_two_columns=in_two_columns)
    code = [row for row in rows if row.kind == "line"]
    assert len(code) == (2 * count if in_two_columns else 3 * count)
    for row in rows:
        text = "".join(text for text, _ in painter.line(row, width).spans)
        assert text.isprintable(), ascii(text[:200])
        assert row.kind != "line" or cell_len(text) == width


def test_ten_thousand_lines_are_read_quickly_and_only_drawn_where_they_are_seen(monkeypatch):
    body = "".join(f"+    x = {number}  # a comment\n" for number in range(10_000))
    head = "diff --git a/a.py b/a.py\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,10000 @@\n"
    started = time.process_time()
    files = parse_diff(head + body)
    rows = diff_rows(files, (), in_two_columns=False)
    assert time.process_time() - started < 5  # it takes 0.05 s
    read = []
    lexer = lexer_of("a.py")
    real = lexer.get_tokens
    monkeypatch.setattr(lexer, "get_tokens", lambda text: read.append(text) or real(text))
    painter = DiffPainter(files=files, colours=CodeColours())
    spans = [painter.line(row, 80).spans for row in rows[5_000:5_030]]
    assert any(style == "muted added" for line in spans for _, style in line)
    assert sum(text.count("\n") for text in read) < 400


def test_code_has_the_colours_of_its_language_and_other_files_have_none():
    files = parse_diff(TWO_HUNKS.replace("TWO", "def two(): return 'x'"))
    painter = DiffPainter(files=files, colours=CodeColours())
    rows = [row for row in diff_rows(files, (), in_two_columns=False) if row.kind == "line"]
    styles = dict(painter.line(rows[2], 80).spans)
    assert styles["def"] == "busy added"
    assert styles["two"] == "bold added"
    assert lexer_of("a.unknown") is None
    assert lexer_of("a\nb.py") is None


def test_two_columns_put_changed_lines_beside_each_other():
    files = parse_diff(TWO_HUNKS)
    rows = [row for row in diff_rows(files, (), in_two_columns=True) if row.kind == "line"]
    pairs = [(row.left and row.left.text, row.right and row.right.text) for row in rows]
    assert pairs == [
        ("one", "one"),
        ("two", "TWO"),
        ("three", "three"),
        ("ten", "ten"),
        ("-- not a header", "++ neither"),
        (None, "more"),
    ]


def test_comments_stand_below_their_lines_and_a_lost_one_above_the_files():
    files = parse_diff(TWO_HUNKS)
    book = CommentBook()
    book.write("1", Anchor(path="src/a.py", side="new", line=2, code="TWO"), "why\nloud")
    book.write("1", Anchor(path="src/a.py", side="old", line=2, code="two"), "kept?")
    book.write("1", Anchor(path="src/a.py", side="new", line=2, code="else"), "lost")
    for in_two_columns in (False, True):
        rows = diff_rows(files, book.of("1"), in_two_columns=in_two_columns)
        kinds = [row.kind for row in rows]
        assert kinds[:4] == ["counter", "note", "comment", "entry"]
        below = [
            (rows[n - 1].kind, row.text) for n, row in enumerate(rows) if row.kind == "comment"
        ]
        assert {text for _, text in below} == {"why", "loud", "kept?", "lost"}
        assert ("comment", "loud") in below
        assert all(anchor_at(files, row) for row in rows if row.kind == "line")


def test_a_long_comment_is_wrapped():
    book = CommentBook()
    book.write("1", Anchor(path="src/a.py", side="new", line=2, code="TWO"), "word " * 40)
    rows = diff_rows(parse_diff(TWO_HUNKS), book.of("1"), in_two_columns=False, width=46)
    shown = [row.text for row in rows if row.kind == "comment"]
    assert len(shown) == 5
    assert "".join(shown) == "word " * 40
    assert max(map(len, shown)) <= 40


def test_comments_are_one_message_with_file_line_and_code():
    book = CommentBook()
    first = Anchor(path="b\x1b[31m.py", side="new", line=12, code="    return 1\r")
    book.write("1", first, "Why 1?\nNot 2?")
    book.write("1", Anchor(path="a.py", side="old", line=3, code="x" * 1_000), "keep it")
    book.write("1", first, "Why 1?")
    assert message_of(book.of("1")) == (
        "2 comments on the change:\n\n"
        f"a.py, line 3 (removed):\n> {'x' * 400}\nkeep it\n\n"
        "b.py, line 12:\n>     return 1\nWhy 1?"
    )
    book.forget("1", [1])
    assert message_of(book.of("1")).startswith("One comment on the change:\n\na.py, line 3")
    assert book.of("2") == ()


def test_the_status_decides_where_comments_go():
    assert road_for("3", "done", 2).command[:2] == ("comment", "--request-changes")
    assert "back with 2 comments" in road_for("3", "done", 2).question
    assert road_for("3", "in_progress", 1).command == ("send", "--", "3", "-")
    assert "1 comment" in road_for("3", "in_progress", 1).question
    assert road_for("3", "merged", 1) is None
