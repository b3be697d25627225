"""Real CLIs at a terminal ask a person to choose: crew shows it, and types only at a prompt."""

import json
import subprocess
from pathlib import Path

import pytest

from agents.running import wait_until
from real_clis.cli_kinds import CLIS
from real_clis.conftest import as_toml
from real_clis.scripted_model import Say, Tool

OUTSIDE = "/etc/made-by-an-agent.txt"
WRITES = Say(tools=(Tool(name="Write", input={"file_path": OUTSIDE, "content": "x"}),))
ESCALATES = {"sandbox_permissions": "require_escalated", "justification": "I need it"}
RUNS = Say(tools=(Tool(name="exec_command", input={"cmd": f"touch {OUTSIDE}", **ESCALATES}),))

AT_A_TERMINAL = """\
{{.Command}} -a on-request -c analytics.enabled=false --disable plugins --disable apps \
-c 'projects={"{{.Worktree}}"={trust_level="trusted"}}' {{.SystemArgs}} {{.Args}} -- {{.Prompt}}"""


@pytest.fixture
def terminal(crew, repo, model):
    yield crew
    command = ["tmux", "-S", "tmux.sock", "kill-server"]
    subprocess.run(command, cwd=repo / ".crew", capture_output=True, check=False)
    model.outside.clear()  # at a terminal, CLIs look for news by themselves


@pytest.fixture
def claude_asks(terminal, script):
    return script(WRITES, Say("as you wish"))


@pytest.fixture
def codex_asks(terminal, script, codex, codex_flags):
    flags, template = json.dumps(codex_flags), json.dumps(AT_A_TERMINAL)
    terminal.configure(
        f'[agents.codex]\ncommand = "{codex}"\nargs = {flags}\ninteractive_template = {template}\n'
        '[agents.codex.env]\nFAKE_KEY = "x"'
    )
    return script(RUNS, Say("as you wish"))


@pytest.fixture
def gemini_asks(terminal, script, gemini):
    terminal.use(CLIS["gemini"])
    command = "{{.Command}} --skip-trust --approval-mode=default --prompt-interactive {{.Prompt}}"
    terminal.configure(f"[agents.gemini]\ninteractive_template = {json.dumps(command)}")
    return script(CLIS["gemini"].run("touch made.txt"), Say("as you wish"))


def _question(crew):
    """The dialog, once the program shows it."""
    found = []

    def is_asked():
        found[:] = json.loads(crew("inbox", "--json"))
        return found

    wait_until(is_asked)
    return found[0]


@pytest.mark.clis
def test_a_dialog_that_only_colours_explain_is_shown_and_left_to_a_person(
    terminal, script, opencode, model
):
    cli = CLIS["opencode"]
    env = dict(cli.env(f"{model.address}/s/play"))
    content = {**json.loads(env["OPENCODE_CONFIG_CONTENT"]), "permission": {"bash": "ask"}}
    env["OPENCODE_CONFIG_CONTENT"] = json.dumps(content)
    command = "{{.Command}} --mini --pure {{.Args}} --prompt {{.Prompt}}"
    terminal.configure(
        f"[agents.opencode]\ninteractive_template = {json.dumps(command)}\n"
        f"[agents.opencode.env]\n{as_toml(env)}"
    )
    play = script(cli.run("touch made.txt"), Say("as you wish"))
    terminal("new", "--title", "one")
    terminal("start", "1", "opencode")
    question = _question(terminal)
    assert (question["question"], question["choices"]) == ("Permission required", [])
    kept = json.loads(terminal("send", "1", "no, do not do that", "--json"))
    assert (kept["state"], kept["question"], len(play.turns)) == ("kept", question["id"], 1)


@pytest.mark.ability(
    "at a terminal: `crew send` waits for a dialog, and `crew answer` answers it",
    "claude",
    "codex",
    "gemini",
    otherwise="the dialog is shown, and answered with `crew attach`",
)
@pytest.mark.parametrize(
    "kind", ["claude", *(pytest.param(one, marks=pytest.mark.clis) for one in ("codex", "gemini"))]
)
def test_a_message_at_a_dialog_is_kept_and_typed_after_its_answer(terminal, kind, request):
    play = request.getfixturevalue(f"{kind}_asks")
    crew = terminal
    crew("new", "--title", "one")
    crew("start", "1", kind)
    question = _question(crew)
    assert question["kind"] == "dialog"
    assert question["choices"][0] in {"Yes", "Yes, proceed", "Allow once"}
    kept = json.loads(crew("send", "1", "no, do not do that", "--json"))
    assert (kept["state"], kept["question"]) == ("kept", question["id"])
    assert question["id"] in crew("dashboard", "--once")
    assert len(play.turns) == 1
    crew("answer", question["id"], "no")
    wait_until(lambda: len(play.turns) == 2 or crew("ps") is None)
    assert "no, do not do that" in json.dumps(play.turns[1].body)
    assert json.loads(crew("inbox", "--json")) == []
    wait_until(lambda: "typed" in crew("send", "1", "well done", "--json"))


@pytest.mark.clis
def test_a_key_that_was_not_approved_before_waits_at_no_dialog(terminal, script, caller):
    play = script(Say("hello"))
    settings = {"customApiKeyResponses": {"approved": ["another key"], "rejected": []}}
    theirs = Path(caller["HOME"]) / ".claude.json"
    theirs.write_text(json.dumps(settings))
    terminal("new", "--title", "one")
    terminal("start", "1", "claude")
    wait_until(lambda: play.turns)
    assert json.loads(theirs.read_text()) == settings
