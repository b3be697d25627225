"""Setting or removing a key changes that value and not one byte more."""

import os
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crew.config.set_key import set_key
from crew.config.toml.toml_edit import with_value, without_key
from crew.config.toml.toml_spans import key_parts, line_of, spans, written_key, written_value
from crew.domain.kernel.errors import CrewError, UsageError
from crew.domain.kernel.templates import AGENT_NAMES, check, expand, template_problem
from refusals import raises_code

FULL = '''\
# on top, with a "quote
[run]   # how it runs
agents = 3      # three, [not] four = 4
"max_steps"=20
  idle_timeout = "5m"

[worktree]
copy = [
  ".env",  # secrets ]
  '[a]',
]

[agents.x]
command_template = """
[run]
agents = 9 \\"""
""\"""
env = { A = "1", "B.c" = '2' }   # last
[agents.y]
[tui]
keybindings = {}
'''


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("run.agents", 5, "agents = 3 ", "agents = 5 "),
        ("run.max_steps", 7, '"max_steps"=20', '"max_steps"=7'),
        ("run.idle_timeout", "1h", '"5m"', '"1h"'),
        ("run.recovery", "reset", '"5m"\n', '"5m"\n  recovery = "reset"\n'),
        ("worktree.copy", ["b"], "[\n  \".env\",  # secrets ]\n  '[a]',\n]", '["b"]'),
        ("worktree.keep", True, "'[a]',\n]\n", "'[a]',\n]\nkeep = true\n"),
        ("agents.x.env.A", 'q"\\', 'A = "1"', 'A = "q\\"\\\\"'),
        ('agents.x.env."B.c"', "3", "'2'", '"3"'),
        ("agents.x.env.D", "4", "'2' }", "'2', D = \"4\" }"),
        ("agents.y.inherit", "x", "[agents.y]\n", '[agents.y]\ninherit = "x"\n'),
        ("tui.keybindings.k", {"command": "c"}, "{}\n", '{ k = { command = "c" } }\n'),
        (
            "log.level",
            "debug",
            "keybindings = {}\n",
            'keybindings = {}\n\n[log]\nlevel = "debug"\n',
        ),
        ("agents.worker_default", "x", "{}\n", '{}\n\n[agents]\nworker_default = "x"\n'),
    ],
)
def test_only_the_value_changes(path, value, old, new):
    assert FULL.count(old) == 1
    assert with_value(FULL, key_parts(path), value) == FULL.replace(old, new)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "[run]\nagents = 5\n"),
        ("# only a comment", "# only a comment\n\n[run]\nagents = 5\n"),
        ("[run]", "[run]\nagents = 5\n"),
        ("[run]\nx = 1", "[run]\nx = 1\nagents = 5\n"),
        ("[run]\r\nx = 1\r\n[b]\r\n", "[run]\r\nx = 1\r\nagents = 5\r\n[b]\r\n"),
        ("\ufeff[run]\nagents = 1\n", "\ufeff[run]\nagents = 5\n"),
        ("run.x = 1\n[b]\n", "run.x = 1\nrun.agents = 5\n[b]\n"),
        ("run = { x = 1 }\n", "run = { x = 1, agents = 5 }\n"),
        ("run = {}\n", "run = { agents = 5 }\n"),
        ("[ run ]\nagents=1 # c", "[ run ]\nagents=5 # c"),
    ],
)
def test_every_layout_keeps_its_shape(before, after):
    assert with_value(before, ("run", "agents"), 5) == after


def test_a_layout_that_cannot_take_the_value_is_refused_with_the_line_to_write():
    with pytest.raises(UsageError) as refused:
        with_value("run = 3\n", ("run", "agents"), 5)
    assert "run.agents = 5" in refused.value.hint
    with pytest.raises(UsageError):
        with_value("[agents.x.env]\nA = '1'\n", ("agents", "x", "env"), {"B": "2"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[a.b]\nx = 1\n", ""),
        ("y = 1\n\n[a.b]\nx = [\n  1,\n]  # one\n[a.b.c.d]\nz = 2", "y = 1\n"),
        ("y = 1\n\n\n[a.b]\nx = 1\n# on z\n\n[z]\n", "y = 1\n\n# on z\n\n[z]\n"),
        ("[a]\nx = 1\nb = { c = 1 }\n", "[a]\nx = 1\n"),
        ("a.b.c = 1\na.x = 2\na.b.d = 3\n", "a.x = 2\n"),
        ("[[a.b]]\nx = 1\n\n[[a.b]]\nx = 2\n\n[a.bc]\n", "\n[a.bc]\n"),
        ("[a]\r\n\r\n[a.b]\r\nx = 1\r\n", "[a]\r\n"),
        ('[ a . "b" ]\nx = 1\n[c]\nb = "[a.b]"\n', '[c]\nb = "[a.b]"\n'),
        ("[a]\nx = 1\n", "[a]\nx = 1\n"),
    ],
)
def test_a_key_is_removed_with_its_lines_alone(before, after):
    assert without_key(before, ("a", "b")) == after


def test_a_key_that_shares_its_line_is_not_removed():
    with pytest.raises(UsageError):
        without_key("a = { b = 1, c = 2 }\n", ("a", "b"))


VALUES = st.recursive(
    st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)
NAMES = st.text(min_size=1, max_size=5)


@given(NAMES, st.dictionaries(NAMES, VALUES, max_size=4), NAMES, VALUES)
def test_whatever_is_written_is_read_back_and_the_rest_with_it(table, others, key, value):
    text = f"[{written_key((table,))}]\n# c\n"
    text += "".join(f"{written_key((name,))} = {written_value(v)}\n" for name, v in others.items())
    changed = with_value(text, (table, key), value)
    assert tomllib.loads(changed) == {table: {**others, key: value}}
    assert all(line in changed for line in text.splitlines())
    spots = {place.path: changed[place.start : place.end] for place in spans(changed)}
    assert spots[table, key] == written_value(value)


@given(
    st.lists(
        st.sampled_from(
            (
                *("{{.Prompt}}", "{{.Nope}}", "{{if .Model}}", "{{ if .No }}", "{{else}}"),
                *("{{end}}", "{{- .Args -}}", "{{}}", "{{.A.B}}", "{{if}}", "t ", "{{", "}}", "\n"),
            )
        ),
        max_size=7,
    ).map("".join)
)
def test_the_config_refuses_exactly_the_templates_that_cannot_be_filled_in(template):
    problem = template_problem(template, AGENT_NAMES)
    for value in ("", "set"):  # each takes other branches of the template
        try:
            expand(template, dict.fromkeys(AGENT_NAMES, value), quote=str)
        except UsageError:
            assert problem is not None
    if problem is None:
        check(template)
    else:
        with pytest.raises(UsageError):
            check(template)


def test_lines_are_found_past_texts_that_look_like_toml():
    assert line_of(FULL, ("run", "agents")) == 3
    assert line_of(FULL, ("agents", "x", "env", "B.c")) == 18
    assert line_of(FULL, ("agents", "y")) == 19


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path


def put(repo, key, said, *, scope="repo", **environ):
    environ = {"HOME": str(repo / "home"), **environ}
    return set_key(repo, environ, scope=scope, key=key, typed=said)


def test_a_file_is_made_where_there_was_none(repo):
    assert put(repo, "run.agents", "5").file == ".crew/config.toml"
    assert put(repo, "run.agents", "6", scope="root").file == ".crew.toml"
    own = put(repo, "run.agents", "7", scope="user")
    assert own.file == "~/.config/crew/config.toml"
    assert (own.written, own.value, str(own.origin)) == (7, 5, ".crew/config.toml:2")
    assert own.is_overridden
    assert (repo / ".crew.toml").read_text() == "[run]\nagents = 6\n"
    assert (repo / "home/.config/crew/config.toml").read_text() == "[run]\nagents = 7\n"


def test_a_variable_that_wins_is_named(repo):
    change = put(repo, "run.agents", "5", CREW_RUN_AGENTS="9")
    assert (change.value, str(change.origin), change.is_overridden) == (9, "CREW_RUN_AGENTS", True)


@pytest.mark.parametrize(
    ("key", "said", "told"),
    [
        ("run.agnts", "5", "did you mean agents?"),
        ("rum.agents", "5", "did you mean run?"),
        ("run.agents", "five", "a whole number"),
        ("run.recovery", "maybe", '"resume", "reset"'),
        ("agents.claude.modl", "x", "agents.claude.modl"),
        ("agents.claude.command_template", "{{.Promt}}", "{{.Prompt}}"),
        ("agents.new.default_model", "x", "agents.new names neither"),
        ("agents.a.inherit", "codx", "did you mean codex?"),
        ("budget.day_usd", "5", "budget.day_usd is not supported by this version of crew yet"),
        ("tui.keybindings.k.comand", "x", "did you mean command?"),
        ("tui.keybindings.k.description", "x", "has no command"),
        ("tui.sort", "size", '"newest"'),
        ("run", "5", "name its table too"),
        ("", "5", "name its table too"),
        ("complete.command", "\udcff", "UTF-8"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_written(repo, key, said, told):
    with pytest.raises(CrewError) as refused:
        put(repo, key, said)
    assert told in f"{refused.value.message} | {refused.value.hint}"
    assert not (repo / ".crew/config.toml").exists()


def test_the_keys_of_an_agent_can_be_set(repo):
    put(repo, "agents.mine.inherit", "codex")
    put(repo, "agents.mine.args", "--a 'b c'")
    put(repo, "agents.mine.env.TOKEN", "5")
    assert tomllib.loads((repo / ".crew/config.toml").read_text()) == {
        "agents": {"mine": {"inherit": "codex", "args": "--a 'b c'", "env": {"TOKEN": "5"}}},
    }


def test_a_value_that_is_wrong_in_the_file_can_be_set_right(repo):
    (repo / ".crew").mkdir()
    (repo / ".crew/config.toml").write_text("[run]\nagents = 'x'\n")
    assert put(repo, "run.agents", "2").value == 2
    (repo / ".crew/config.toml").write_text("[run\n")
    with raises_code(UsageError, "invalid_toml", "config.toml:1"):
        put(repo, "run.agents", "2")
    assert (repo / ".crew/config.toml").read_text() == "[run\n"


def test_a_link_stays_a_link_and_rights_stay(repo):
    real = repo / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o600)
    (repo / ".crew.toml").symlink_to(real)
    put(repo, "run.agents", "2", scope="root")
    assert (repo / ".crew.toml").is_symlink()
    assert real.read_text() == "[run]\nagents = 2\n"
    assert real.stat().st_mode & 0o777 == 0o600


SETTER = (
    "import sys; from pathlib import Path; from crew.config.set_key import set_key;"
    "[set_key(Path(sys.argv[1]), {}, scope='repo', key=key, typed='1') for key in sys.argv[2:]]"
)


def test_many_at_once_lose_nothing(repo):
    keys = [f"agents.scripted.env.K{number}" for number in range(24)]

    def some(part):
        command = [sys.executable, "-c", SETTER, str(repo), *keys[part::4]]
        return subprocess.run(command, check=True, timeout=60)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(some, range(4)))
    values = tomllib.loads((repo / ".crew/config.toml").read_text())
    assert len(values["agents"]["scripted"]["env"]) == 24


@pytest.mark.parametrize("point", ["write.before", "write.after", "make_folder.after"])
def test_a_crash_leaves_the_old_file_or_the_new_one(repo, point):
    (repo / ".crew").mkdir()
    file = repo / ".crew/config.toml"
    file.write_text("[run]\nagents = 3\n")
    command = [sys.executable, "-c", SETTER, str(repo), "run.agents"]
    environ = {**os.environ, "CREW_CRASH_AT": f"config.{point}"}
    assert subprocess.run(command, env=environ, check=False, timeout=60).returncode == -9
    new = "1" if point == "write.after" else "3"
    assert file.read_text() == f"[run]\nagents = {new}\n"
    subprocess.run(command, check=True, timeout=60)
    assert file.read_text() == "[run]\nagents = 1\n"


@given(st.text())
def test_a_text_is_written_as_toml_reads_it(text):
    assert tomllib.loads(f"a = {written_value(text)}")["a"] == text
