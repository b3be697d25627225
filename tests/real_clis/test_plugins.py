"""A person's own CLI uses crew through the plugin that `crew plugin install` writes."""

import json
import subprocess
from pathlib import Path

import pytest

from real_clis.cli_kinds import CLIS
from real_clis.conftest import find_cli
from real_clis.scripted_model import Say, Tool

pytestmark = pytest.mark.timeout(240)

STREAM = ("-p", "--output-format", "stream-json", "--verbose")
ONLY_THE_MODEL = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


@pytest.fixture
def session(caller, model, repo, script):
    """One turn of the person's own CLI in the repository, in which the model calls this tool."""

    def session(name, *args, tool, **values):
        cli = CLIS[name]
        url = f"{model.address}/s/play"
        play = script(Say(tools=(Tool(name=tool, input=values),)), Say("It is done."))
        done = subprocess.run(
            [str(find_cli(name)), *args, *cli.flags(url)],
            input="do it",
            cwd=repo,
            env={**caller, **ONLY_THE_MODEL, **cli.env(url)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return play

    return session


def titles(crew):
    return [task["title"] for task in json.loads(crew("list", "--json"))]


@pytest.fixture
def asked(crew):
    """Task 1, whose agent has asked q1."""
    crew.configure('[agents.asks]\ncommand_template = "crew signal needs-user-input --question x"')
    crew("new", "--title", "one")
    crew.start("run", "--agents", "1", "--agent", "asks", "--drain", "-q").communicate(timeout=100)


@pytest.mark.ability(
    "your own assistant uses crew (`crew plugin install`)",
    "claude",
    otherwise="configure `crew mcp` by hand",
)
@pytest.mark.clis
@pytest.mark.usefixtures("asked")
def test_claude_loads_the_plugin_shows_questions_and_creates_a_task(crew, session, claude, caller):
    crew("plugin", "install", "claude")
    folder = f"{caller['HOME']}/.claude/skills/crew"
    subprocess.run([claude, "plugin", "validate", "--strict", folder], env=caller, check=True)
    tool = "mcp__plugin_crew_crew__create-task"
    play = session("claude", *STREAM, "--allowedTools", tool, tool=tool, title="From Claude")
    assert titles(crew) == ["one", "From Claude"]
    assert "q1 (task 1)" in json.dumps(play.turns[0].body)  # the hook


@pytest.mark.ability("your own assistant uses crew (`crew plugin install`)", "codex")
def test_codex_creates_a_task(crew, session, codex):
    crew("plugin", "install", "codex")
    quiet = ("--disable", "plugins", "--disable", "apps", "-c", "analytics.enabled=false")
    approve = ("-c", 'mcp_servers.crew-tasks.default_tools_approval_mode="approve"')
    tool = "mcp__crew_tasks/create_task"
    session("codex", "exec", "--json", *quiet, *approve, tool=tool, title="From Codex")
    assert titles(crew) == ["From Codex"]


CODEX_WRITES = {
    "a feature": ("features", "enable", "unified_exec"),
    "a server": ("mcp", "add", "docs", "--", "docs-server"),
}


@pytest.mark.parametrize("what", CODEX_WRITES)
def test_what_codex_writes_after_the_install_stays(crew, caller, codex, what):
    settings = Path(caller["HOME"]) / ".codex/config.toml"
    settings.parent.mkdir(exist_ok=True)

    def codex_writes():
        command = [codex, *CODEX_WRITES[what]]
        subprocess.run(command, env=caller, check=True, capture_output=True, timeout=60)
        return settings.read_text()

    settings.write_text('model = "o3"  # mine\n')
    alone = codex_writes()
    settings.write_text('model = "o3"  # mine\n')
    crew("plugin", "install", "codex")
    after = codex_writes()
    crew("plugin", "install", "codex")
    assert settings.read_text() == after
    crew("plugin", "uninstall", "codex")
    assert settings.read_text() == alone


@pytest.mark.ability("your own assistant uses crew (`crew plugin install`)", "gemini")
@pytest.mark.clis
@pytest.mark.usefixtures("asked")
def test_gemini_loads_the_extension_shows_questions_and_creates_a_task(crew, session, gemini):
    crew("plugin", "install", "gemini")
    flags = ("-o", "stream-json", "--skip-trust", "--approval-mode", "yolo", "-p", "do it")
    play = session("gemini", *flags, tool="mcp_crew-tasks_create-task", title="From Gemini")
    assert titles(crew) == ["one", "From Gemini"]
    assert "q1 (task 1)" in json.dumps(play.turns[0].body)  # the hook


@pytest.mark.clis
def test_an_agent_of_crew_gets_no_tool_and_no_question_from_the_plugins(crew, cli, script):
    for assistant in ("claude", "codex", "gemini"):
        crew("plugin", "install", assistant)
    if cli.name != "claude":  # which `crew` uses already
        crew.use(cli)
    work = "echo hello > new.txt && git add new.txt && git commit -qm 'add new.txt'"
    play = script(cli.run(work), cli.complete("It says hello."), Say("DONE"))
    crew("new", "--title", "Write new.txt")
    crew("run", "--agents", "1", "--agent", cli.name, "--drain")
    asked = json.dumps(play.turns[0].body)
    assert "create-task" not in asked
    assert "create_task" not in asked
    assert json.loads(crew("inbox", "--json")) == []
