"""`crew plugin` connects a person's own assistant, and changes nothing that the person wrote."""

import json
import os
import tomllib
from pathlib import Path

import pytest

from crew.domain.kernel.fact import Fact
from crew.front.cli.watching.assistant_news import news_of
from crew.front.mcp.stdio_shim import respond
from front.conftest import CREW

OWN_SETTINGS = 'model = "o3"  # mine\n\n[mcp_servers.docs]\ncommand = "docs"\n'


@pytest.fixture
def home(scene):
    return Path(os.environ["HOME"])


def files_below(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


FOLDERS = {
    "claude": ".claude/skills/crew",
    "codex": ".codex/skills/crew",
    "gemini": ".gemini/extensions/crew",
}


@pytest.mark.parametrize("assistant", FOLDERS)
def test_install_says_which_files_it_writes_can_be_repeated_and_taken_back(scene, home, assistant):
    before = files_below(home)
    planned = scene.ok("plugin", "install", assistant, "--print", "--json").json
    assert files_below(home) == before
    said = scene.ok("plugin", "install", assistant)
    assert said.lines == [f"written: {one['path']}" for one in planned]
    assert "next: " in said.err
    for one in planned:
        assert Path(one["path"]).read_text() == one["content"]
    after = files_below(home)
    again = scene.ok("plugin", "install", assistant, "--json").json["files"]
    assert {one["change"] for one in again} == {"unchanged"}
    assert files_below(home) == after
    written = {Path(one["path"]) for one in planned}
    own_list = home / FOLDERS[assistant] / ".crew-plugin.json"
    assert {home / name for name in set(after) - set(before)} == written | {own_list}
    scene.ok("plugin", "uninstall", assistant)
    assert files_below(home) == before
    assert not (home / FOLDERS[assistant]).exists()
    assert "nothing to remove" in scene.ok("plugin", "uninstall", assistant).err


def test_the_program_in_a_plugin_is_the_one_that_wrote_it(scene, home):
    scene.ok("plugin", "install", "claude", "-q")
    servers = json.loads((home / ".claude/skills/crew/.mcp.json").read_text())["mcpServers"]
    assert servers == {
        "crew": {"command": str(CREW), "args": ["mcp"], "env": {"CREW_MCP_FOR": "person"}}
    }


@pytest.mark.parametrize("name", ["SKILL.md", "notes.md"])
def test_a_folder_of_a_persons_own_is_left_alone(scene, home, name):
    own = home / ".claude/skills/crew" / name
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    assert (
        str(own.parent)
        in scene.refused(5, "plugin_file_not_ours", "plugin", "install", "claude").message
    )
    scene.ok("plugin", "uninstall", "claude")
    assert files_below(own.parent) == {name: b"mine"}


def test_an_install_that_was_killed_is_repeated(scene, home):
    killed = scene.crew("plugin", "install", "claude", CREW_CRASH_AT="front.write_plugin.after:2")
    assert killed.code != 0
    changes = scene.ok("plugin", "install", "claude", "--json").json["files"]
    assert [one["change"] for one in changes].count("unchanged") == 2
    scene.ok("plugin", "uninstall", "claude")
    assert not (home / ".claude/skills/crew").exists()


def test_a_file_that_a_person_changed_is_neither_overwritten_nor_removed(scene, home):
    scene.ok("plugin", "install", "claude")
    hooks = home / ".claude/skills/crew/hooks/hooks.json"
    hooks.write_text("{}")
    assert (
        str(hooks)
        in scene.refused(5, "plugin_file_not_ours", "plugin", "install", "claude").message
    )
    said = scene.ok("plugin", "uninstall", "claude")
    assert f"kept: {hooks} (you changed it)" in said.lines
    assert files_below(home / ".claude/skills") == {"crew/hooks/hooks.json": b"{}"}


def test_an_older_plugin_is_updated(scene, home):
    scene.ok("plugin", "install", "gemini")
    folder = home / ".gemini/extensions/crew"
    listed = json.loads((folder / ".crew-plugin.json").read_text())
    (folder / "README.md").write_text("older")
    older = "d8e8fca2dc0f896fd7cb4cb0031ba249"
    listed["files"]["README.md"] = [older]
    listed["files"]["gone.md"] = [older]
    (folder / ".crew-plugin.json").write_text(json.dumps(listed))
    assert (
        "README.md"
        in scene.refused(5, "plugin_file_not_ours", "plugin", "install", "gemini").message
    )
    (folder / "README.md").unlink()
    changes = scene.ok("plugin", "install", "gemini", "--json").json["files"]
    assert {Path(one["path"]).name: one["change"] for one in changes}["README.md"] == "written"
    assert "gone.md" not in (folder / ".crew-plugin.json").read_text()


def test_the_settings_of_codex_keep_every_other_byte(scene, home, tmp_path):
    kept = tmp_path / "dotfiles.toml"
    kept.write_text(OWN_SETTINGS)
    kept.chmod(0o640)
    settings = home / ".codex/config.toml"
    settings.parent.mkdir()
    settings.symlink_to(kept)
    scene.ok("plugin", "install", "codex")
    assert kept.read_text().startswith(OWN_SETTINGS)
    assert set(tomllib.loads(kept.read_text())["mcp_servers"]) == {"docs", "crew-tasks"}
    more = kept.read_text() + '\n[projects."/x"]\ntrust_level = "trusted"\n'
    kept.write_text(more)  # as Codex adds by itself
    scene.ok("plugin", "install", "codex")
    assert kept.read_text() == more
    scene.ok("plugin", "uninstall", "codex")
    assert kept.read_text() == OWN_SETTINGS + '\n[projects."/x"]\ntrust_level = "trusted"\n'
    assert settings.is_symlink()
    assert kept.stat().st_mode & 0o777 == 0o640


ENTRY = f'''[mcp_servers.crew-tasks]
command = "{CREW}"
args = ["mcp"]
'''
ENV = '[mcp_servers.crew-tasks.env]\nCREW_MCP_FOR = "person"\n'
INLINE_ENV = 'env = { CREW_MCP_FOR = "person" }\n'
BEGIN, END = "# crew plugin: begin\n", "# crew plugin: end\n"
ON_TOP = 'model = "o3"  # mine\n'
DOCS = '\n[mcp_servers.docs]\ncommand = "docs-server"\n'
FEATURES = "\n[features]\nunified_exec = true\n"
APPROVED = '[mcp_servers.crew-tasks.tools.create-task]\napproval_mode = "approve"\n'

WRITTEN_BY_CODEX = {
    "codex features enable": (
        f"{ON_TOP}\n{BEGIN}{ENTRY}{INLINE_ENV}{FEATURES}{END}",
        ON_TOP + FEATURES,
    ),
    "codex mcp add": (
        f"{ON_TOP}\n{ENTRY}\n{ENV}{DOCS}{END}",
        ON_TOP + DOCS,
    ),
    "both": (
        f"{ON_TOP}\n{ENTRY}\n{ENV}{DOCS}{FEATURES}{END}",
        ON_TOP + DOCS + FEATURES,
    ),
    "a tool that a person always allows": (
        f"{ON_TOP}\n{BEGIN}{ENTRY}{INLINE_ENV}\n{APPROVED}{FEATURES}{END}",
        ON_TOP + FEATURES,
    ),
    "no comment is left": (f"{ON_TOP}\n{ENTRY}{INLINE_ENV}{DOCS}", ON_TOP + DOCS),
    "lines that end as on Windows": (
        f"{ON_TOP}\n{BEGIN}{ENTRY}{INLINE_ENV}{END}{DOCS}".replace("\n", "\r\n"),
        (ON_TOP + DOCS).replace("\n", "\r\n"),
    ),
    "a text that looks like a comment of crew": (
        f"{ON_TOP}notes = '''\n{BEGIN}'''\n\n{ENTRY}{INLINE_ENV}",
        f"{ON_TOP}notes = '''\n{BEGIN}'''\n",
    ),
}


@pytest.mark.parametrize("case", WRITTEN_BY_CODEX)
def test_what_codex_itself_writes_around_the_entry_stays(scene, home, case):
    written, left = WRITTEN_BY_CODEX[case]
    settings = home / ".codex/config.toml"
    scene.ok("plugin", "install", "codex")
    settings.write_bytes(written.encode())
    scene.ok("plugin", "install", "codex")
    assert settings.read_bytes().decode() == written
    older = written.replace(str(CREW), "/older/crew")
    settings.write_bytes(older.encode())
    scene.ok("plugin", "install", "codex")
    assert settings.read_bytes().decode() == written
    said = scene.ok("plugin", "uninstall", "codex")
    assert settings.read_bytes().decode() == left
    assert f"written: {settings}" in said.lines


def test_an_entry_that_codex_has_removed_is_written_again(scene, home):
    settings = home / ".codex/config.toml"
    settings.parent.mkdir()
    settings.write_text(ON_TOP)
    scene.ok("plugin", "install", "codex")
    installed = settings.read_text()
    removed = ON_TOP + END  # as `codex mcp remove crew-tasks` leaves it
    settings.write_text(removed)
    scene.ok("plugin", "install", "codex")
    assert settings.read_text() == installed
    settings.write_text(removed)
    scene.ok("plugin", "uninstall", "codex")
    assert settings.read_text() == ON_TOP


def test_an_entry_that_a_person_has_made_their_own_is_kept(scene, home):
    settings = home / ".codex/config.toml"
    scene.ok("plugin", "install", "codex")
    own = settings.read_text().replace(INLINE_ENV, "").replace(str(CREW), "mine")
    settings.write_text(own)
    scene.refused(5, "entry_not_ours", "plugin", "install", "codex")
    said = scene.ok("plugin", "uninstall", "codex")
    assert f"kept: {settings} (you changed it)" in said.lines
    assert settings.read_text() == own


def test_settings_that_cannot_lose_the_entry_keep_the_plugin(scene, home):
    settings = home / ".codex/config.toml"
    scene.ok("plugin", "install", "codex")
    before = files_below(home / ".codex/skills")
    inline = 'mcp_servers = { crew-tasks = { command = "x", env = { CREW_MCP_FOR = "person" } } }\n'
    for text in (inline, f"{ENTRY}not toml"):
        settings.write_text(text)
        assert scene.crew("plugin", "uninstall", "codex").code != 0
        assert settings.read_text() == text
        assert files_below(home / ".codex/skills") == before


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('[mcp_servers.crew-tasks]\ncommand = "mine"\n', "entry_not_ours"),
        ("mcp_servers = { docs = { command = 'docs' } }\n", "settings_unreadable"),
        ("not toml", "settings_unreadable"),
        ('model = "\udcff"', "settings_unreadable"),
    ],
)
def test_settings_that_cannot_take_the_entry_are_left_alone(scene, home, text, code):
    settings = home / ".codex/config.toml"
    settings.parent.mkdir()
    content = text.encode(errors="surrogateescape")
    settings.write_bytes(content)
    scene.refused(5, code, "plugin", "install", "codex")
    assert files_below(home / ".codex") == {"config.toml": content}


def test_the_hook_shows_open_questions_to_people_and_their_ids_to_the_model(scene):
    assert scene.ok("_waiting", "SessionStart").out == ""
    scene.configure('[agents.asks]\ncommand_template = "crew signal needs-user-input --question x"')
    scene.ok("new", "--title", "one")
    scene.crew("run", "--agent", "asks", "--drain", "-q")
    answer = scene.ok("_waiting", "SessionStart").json
    assert answer["systemMessage"] == 'crew:\ntask 1 asks q1: x (crew answer q1 "…")'
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert "q1 (task 1)" in output["additionalContext"]
    assert ": x" not in output["additionalContext"]
    assert scene.ok("_waiting", "SessionStart", CREW_TOKEN="1.1/1/x").out == ""
    assert scene.ok("_news", CREW_TOKEN="1.1/1/x").out == ""


def test_hook_and_monitor_print_nothing_where_no_crew_is(scene, tmp_path):
    for args in (["_waiting", "SessionStart"], ["_news"]):
        said = scene.ok(*args, cwd=tmp_path)
        assert (said.out, said.err) == ("", "")


def test_news_are_what_needs_a_person():
    def fact(kind, trigger, target=None, **changes):
        return Fact(
            at=1.0, kind=kind, subject="7", trigger=trigger, source=None, target=target,
            changes=changes,
        )  # fmt: skip

    assert news_of(fact("question", "asked", "open", question="pay me")) == (
        "question 7 waits for the person: crew inbox 7"
    )
    assert news_of(fact("task", "failed", "error", error="pay me")) == (
        "task 7 has failed: crew show 7"
    )
    assert news_of(fact("agent", "step_failed", "stuck")) == "agent 7 is stuck: crew ps"
    assert news_of(fact("quest", "ended", "complete")) == "quest 7 is complete"
    assert news_of(fact("task", "delivered", "merged")) == ""
    assert news_of(fact("run", "noted")) == ""


def test_the_server_of_a_plugin_has_no_tools_for_a_step(scene, monkeypatch):
    def tools():
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        return [tool["name"] for tool in respond(line.encode())["result"]["tools"]]

    monkeypatch.setenv("CREW_MCP_FOR", "person")
    monkeypatch.chdir(scene.root)
    assert "create-task" in tools()
    monkeypatch.setenv("CREW_TOKEN", "1.1/1/x")
    assert tools() == []
