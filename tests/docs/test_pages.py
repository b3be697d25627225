"""What the pages name exists: files, links, commands and options; and how their sentences read."""

import inspect
import re
import shlex
from pathlib import Path

import click
import pytest

from crew import Crew, Quest, Running
from crew.config.layers.layers import load_settings
from crew.config.model import TABLES
from crew.config.validate_config import readers
from crew.config.workflow_files import load_workflow
from crew.front.cli.call import Call
from crew.front.cli.root import root
from docs.pages import PAGES, ROOT, WRITTEN, blocks, prose

SOURCE = ROOT / "src" / "crew"
FOLDERS = ("src", "tests", "docs", "bench", "examples")
BANNED = {
    "a clause as a subject": r"^(?![#|])(?:.*[.:;] |- |)(?:Who(?:ever|m)?|What(?:ever)?) (?!.*\?)",
    "a person for a process": r"\b(?:somebody|nobody|anybody|whoever|everybody)\b",
    "a count without a number": r"\bso many\b",
    "works on": r"\bwork(?:s|ed|ing)? at\b(?! (?:all|once|the same|a time))",
    "continues": r"\bgo(?:es|ing)? on\b",
    "is": r"\bstands?\b(?! for\b)",
    "permission": r"\basks? leave\b",
    "again, forever": r"\b(?:anew|for ever)\b",
    "terminal": r"\bterminal sessions?\b",
    "the document a feature came from": r"\bthe seed\b|\bseed's\b|\bseed 00\d\b",
}
HISTORY_OF_SEEDS = re.compile(r"seed of the simulator|one seed replays|gets its seed")


DECISIONS = [page for page in WRITTEN if page.parent.name == "decisions"]


def named(page):
    return page.relative_to(ROOT).as_posix()


def code(page):
    """Inline code, the commands of shell blocks apart."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_every_source_file_that_a_page_names_exists(page):
    packages = [entry.name for entry in SOURCE.iterdir() if entry.is_dir()]
    ours = re.compile(rf"(?:{'|'.join((*FOLDERS, *packages))})/[\w./-]*|[\w./-]+\.py")
    paths = [word for word in code(page) if ours.fullmatch(word)]
    missing = [
        word
        for word in paths
        if not any((base / word).exists() for base in (ROOT, SOURCE, ROOT / "docs"))
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path), target


def anchors(path):
    headings = re.findall(r"^#+ (.+)$", path.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_every_command_that_a_page_names_exists(page):
    lines = [line for block in blocks(page.read_text(), "sh") for line in block.splitlines()]
    calls = [call for text in [*lines, *code(page)] for call in crew_calls(text)]
    wrong = [problem for call in calls if (problem := fault(call))]
    assert wrong == []


def crew_calls(text):
    """Every call of crew in a line of shell, as words."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        words = list(lexer)
    except ValueError:  # a part of a line, with half a quotation
        return
    call: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= set("|&;()"):
            if call[:1] == ["crew"]:
                yield call[1:]
            call = []
        else:
            call.append(word)


def fault(words):
    command = root
    context = click.Context(root, info_name="crew", obj=Call())
    while isinstance(command, click.Group):
        while words and words[0].startswith("-"):
            words = words[2:] if words[0] == "-C" else words[1:]
        if not words or not re.fullmatch(r"[a-z][\w-]*", words[0]):
            return None  # crew alone, or a placeholder
        below = command.get_command(context, words[0])
        if below is None:
            return None if command.invoke_without_command and command is not root else words
        command, words = below, words[1:]
    options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)}
    options |= {"--help", "-h", "--json", "-q", "-v", "--no-color", "--"}
    for word in words:
        if word == "--":
            return None
        if word.startswith("-") and len(word) > 1 and word.partition("=")[0] not in options:
            return [command.name, word]
    return None


@pytest.mark.parametrize("page", WRITTEN, ids=named)
def test_the_sentences_of_a_page_are_plain(page):
    text = HISTORY_OF_SEEDS.sub("", prose(page.read_text()))
    found = [
        f"{meaning}: …{text[max(0, match.start() - 30) : match.end() + 30]!r}"
        for meaning, pattern in BANNED.items()
        for match in re.finditer(pattern, text, flags=re.MULTILINE)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("page", "block"),
    [(page, block) for page in WRITTEN for block in blocks(page.read_text(), "toml")],
    ids=lambda value: named(value) if isinstance(value, Path) else "",
)
def test_every_configuration_and_workflow_in_a_page_loads(page, block, tmp_path):
    first = block.partition("\n")[0]
    if first.startswith("# .crew/workflows/"):
        file = tmp_path / Path(first).name
        file.write_text(block)
        assert load_workflow(file).roles
    else:
        (tmp_path / ".crew.toml").write_text(block)
        load_settings(tmp_path, {"HOME": str(tmp_path)})


def test_every_page_can_be_reached_from_the_readme():
    seen, ahead = set(), [ROOT / "README.md"]
    while ahead:
        page = ahead.pop()
        if page in seen or not page.is_file():
            continue
        seen.add(page)
        targets = re.findall(r"\]\(([^)\s#]+\.md)", page.read_text())
        ahead += [(page.parent / target).resolve() for target in targets if "://" not in target]
    apart = {ROOT / "AGENTS.md"} | set(DECISIONS)  # read by agents, and listed as a folder
    assert set(PAGES) - seen - apart == set()


def test_the_names_in_the_page_about_python_exist():
    kinds = {"Crew": Crew, "Quest": Quest, "Running": Running}
    tables = re.split(r"^\| `(\w+)", (ROOT / "docs/python.md").read_text(), flags=re.MULTILINE)
    kind = None
    for name in tables[1::2]:
        if name in kinds:
            kind = kinds[name]
        else:
            is_set = f"self.{name} = " in inspect.getsource(kind)
            assert is_set or hasattr(kind, name), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("page", DECISIONS, ids=named)
def test_every_decision_has_the_same_form(page):
    text = page.read_text()
    assert text.startswith(f"# {int(page.name[:3])}. ")
    parts = re.findall(r"^\*\*(.+?)\*\*", text, flags=re.MULTILINE)
    assert [part for part in parts if part != "Measured."] == [
        "Context.",
        "Choice.",
        "Consequence.",
    ]
    assert len(text.splitlines()) <= 20


@pytest.mark.parametrize("table", TABLES)
def test_the_configuration_page_explains_every_key(table):
    page = (ROOT / "docs/configuration.md").read_text()
    missing = [
        key
        for key in readers(TABLES[table])
        if not any(
            f"`{spelling}`" in page
            for spelling in (f"{table}.{key}", f"{table}.*", f"[{table}] {key}", key)
        )
    ]
    assert missing == []
