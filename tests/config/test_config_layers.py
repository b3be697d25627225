"""The config: what holds by default, who wins, and what a mistake is told as."""

import operator
import os

import pytest

from crew.config import model
from crew.config.layers.layers import load_settings, merged_settings
from crew.config.model import KeyBinding
from crew.config.price_list import listed_prices, prices_for
from crew.config.reserved_keys import NOT_YET
from crew.config.toml.key_names import key_name
from crew.config.toml.toml_spans import line_of
from crew.config.validate_config import has_key, readers
from crew.domain.kernel.errors import NotFound, UsageError
from crew.domain.kernel.prices import Price
from crew.domain.kernel.templates import PLACE_NAMES
from refusals import raises_code


@pytest.fixture(autouse=True)
def nobody(monkeypatch, tmp_path):
    """No config and no variables of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(("CREW_", "XDG_CONFIG_HOME")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def repo(tmp_path):
    (tmp_path / ".crew").mkdir()
    return tmp_path


def root(repo, text):
    (repo / ".crew.toml").write_text(text)
    return load_settings(repo)


def mistake(repo, text):
    (repo / ".crew.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        load_settings(repo)
    return f"{refused.value.message} | {refused.value.hint}"


def test_the_defaults_are_those_of_the_contract(repo):
    settings = load_settings(repo)
    assert settings == merged_settings(())
    run = settings.run
    assert (run.agents, run.max_steps, run.step_timeout_s, run.idle_timeout_s) == (3, 20, 1800, 600)
    assert (run.backoff_s, run.max_backoff_s, run.stuck_after) == (2.0, 60.0, 5)
    assert run.recovery == "resume"
    assert (settings.merge.strategy, settings.merge.conflict) == ("speculative", "agent")
    assert settings.merge.slots == max(1, (os.cpu_count() or 1) // 2)
    assert settings.complete.on_no_tests == "pass"
    assert (settings.review.mode, settings.review.max_rounds) == ("none", 20)
    assert (settings.tasks.source, settings.tasks.namespace) == ("files", "default")
    assert settings.agents.worker_default == "claude"
    assert settings.agents.reviewer_default == "claude-reviewer"
    assert settings.agents.manager_default == "claude-manager"


def test_the_later_file_wins_key_by_key(repo):
    (repo / ".crew.toml").write_text('[run]\nagents = 5\nmax_steps = 7\n[log]\nlevel = "debug"\n')
    (repo / ".crew" / "config.toml").write_text('[run]\nagents = 9\nidle_timeout = "90s"\n')
    settings = load_settings(repo)
    assert (settings.run.agents, settings.run.max_steps) == (9, 7)
    assert settings.run.idle_timeout_s == 90
    assert settings.log.level == "debug"


def test_every_key_of_the_contract_is_known(repo):
    settings = root(
        repo,
        """
        [run]
        agents = 1
        step_timeout = "2h"
        recovery = "reset"
        [complete]
        command = "make check"
        timeout = 30
        min_reviews = 2
        skip_review = true
        on_no_tests = "fail"
        [review]
        mode = "claudex"
        agent = ["a", "b"]
        [merge]
        target = "develop"
        strategy = "serial"
        batch = 4
        slots = 8
        conflict = "ask"
        [worktree]
        dir = "../wt"
        setup_command = "npm install"
        copy = [".env"]
        link = ["node_modules"]
        pool = 2
        keep = true
        [tasks]
        source = "tk"
        namespace = "ann"
        new_task_base = "default"
        [sandbox]
        mode = "off"
        [log]
        level = "warning"
        [diff]
        command = "git diff"
        [notify]
        urls = ["https://example.org"]
        command = "notify-send"
        """,
    )
    assert settings.review.agents == ("a", "b")
    assert settings.complete.timeout_s == 30
    assert settings.merge.slots == 8


def test_one_reviewer_may_be_written_without_a_list(repo):
    assert root(repo, '[review]\nagent = "codex"').review.agents == ("codex",)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[run]\nagents = 3\nmax_stepz = 2\n", [".crew.toml:3", "run.max_stepz", "max_steps"]),
        ("[rum]\nagents = 3\n", [".crew.toml:1", "rum", "did you mean run"]),
        ("agent = 3\n", [".crew.toml:1", "agent", "did you mean agents"]),
        ("[agents.x]\ncomand = 'y'\n", [".crew.toml:2", "agents.x.comand", "command"]),
        ("[agents]\nworker_defualt = 'y'\n", ["agents.worker_defualt", "worker_default"]),
        ("[tui]\nkeys = 1\n", ["tui.keys", "keybindings"]),
        ("\n[run]\n\nagents = 'three'\n", [".crew.toml:4", "run.agents", "whole number"]),
        ("[run]\nagents = true\n", [".crew.toml:2", "run.agents", "whole number"]),
        ("[sandbox]\nnetwork = 'x.org'\n", ["sandbox.network", "or a list of hosts"]),
        ("[sandbox]\nnetwork = ['localhost']\n", ["sandbox.network", '"127.0.0.1:8080"']),
        ("[run]\nmax_steps = 0\n", ["run.max_steps is 0", "of at least 1"]),
        ("[run]\nbackoff_s = -1\n", ["run.backoff_s", "of at least 0"]),
        ("[run]\nbackoff_s = nan\n", ["run.backoff_s", "of at least 0"]),
        ('[run]\nstep_timeout = "soon"\n', [".crew.toml:2", "run.step_timeout", '"10m"']),
        ('[run]\nrecovery = "maybe"\n', ["run.recovery", '"resume", "reset"']),
        ("[complete]\nskip_review = 'yes'\n", ["complete.skip_review", "true or false"]),
        ("[review]\nagent = 4\n", ["review.agent", "a name or a list"]),
        ("[worktree]\ncopy = '.env'\n", ["worktree.copy", "a list of texts"]),
        ("run = 3\n", [".crew.toml:1", "run is 3", "[run]"]),
        ("run = { agents = 'x' }\n", [".crew.toml:1", "run.agents"]),
        ("run.agents = 'x'\n", [".crew.toml:1", "run.agents"]),
        ("[agents.x]\nenv = { A = 1 }\n", ["agents.x.env", "a table of texts"]),
        ("[agents.x]\nargs = '\"'\n", ["agents.x.args", "quotes"]),
        ("[tui]\nsort = 'size'\n", [":2", "tui.sort", '"newest"']),
        ("[tui]\nkeybindings = 3\n", [":2", "tui.keybindings", "[tui.keybindings]"]),
        ("[tui.keybindings]\nx = 'd'\n", [":2", "tui.keybindings.x is 'd'", "write a table"]),
        ("[tui.keybindings]\nx = { comand = 'd' }\n", [":2", "keybindings.x.comand", "command"]),
        ("[tui.keybindings]\nx = { command = 3 }\n", [":2", "keybindings.x.command is 3", "text"]),
        (
            "[tui.keybindings]\n\n'ctrl+r' = { command = 'd', override = 'yes' }\n",
            [":3", "tui.keybindings.ctrl+r.override", "true or false"],
        ),
        (
            "[tui.keybindings]\nx = { command = 'd {{.Task}}' }\n",
            [":2", "tui.keybindings.x.command", "{{.Task}} is unknown", "{{.TaskID}}"],
        ),
        (
            "[tui.keybindings]\n'ctrl-r' = { command = 'd' }\n",
            [":2", "ctrl-r is not the name of a key", "f5"],
        ),
        ("[tui.keybindings]\nx = { description = 'd' }\n", ["'x'", "has no command"]),
        (
            "[agents.x]\ncommand_template = '{{.Promt}}'\n",
            [":2", "agents.x.command_template", "{{.Promt}} is unknown", "{{.Prompt}}"],
        ),
        (
            '[agents.x]\ninherit = \'claude\'\nsetup_script = """\nrun\n{{.Prompt}}\n"""\n',
            [":3", "agents.x.setup_script", "{{.Prompt}} is unknown"],
        ),
        ("[diff]\ncommand = '{{if .Args}}'\n", [":2", "diff.command", "has no {{end}}"]),
        ("[agents.x]\ninteractive_template = '{{.Sesion}}'\n", [":2", "{{.Session}}"]),
        ("[agents.x]\ninteractive_resume = '{{end}}'\n", [":2", "has no meaning"]),
        (
            "[agents.claude]\nsetup_script = 'a {{.TaskId}}'\n",
            [":2", "agents.claude.setup_script", "{{.TaskID}}"],
        ),
        ("[workers.w]\nagent = 3\n", [":2", "agents.w.inherit"]),
        ("[workers.w]\ncomand = 'x'\n", [":2", "agents.w.comand", "command"]),
        (
            '[agents.x]\nprompt = """\n[run]\nagents = 3\n"""\n[run]\nagents = \'x\'\n',
            [":7", "run.agents"],
        ),
        ("[agents.x]\nfirst_run = [{ file = 'x' }]\n", ["agents.x.first_run", "a list like"]),
        ("[run]\nagents = \n", [".crew.toml:2", "TOML"]),
        ("[run\n", [".crew.toml:1"]),
        ("[run]\nagents = 1\nagents = 2\n", [".crew.toml:3"]),
    ],
)
def test_a_mistake_names_the_file_the_line_and_the_key(repo, text, parts):
    told = mistake(repo, text)
    for part in parts:
        assert part in told, told


def test_a_mistake_in_the_second_file_names_that_file(repo):
    (repo / ".crew" / "config.toml").write_text("[run]\nx = 1\n")
    with pytest.raises(UsageError) as refused:
        load_settings(repo)
    assert refused.value.message.startswith(".crew/config.toml:2: run.x")


def test_a_file_that_is_not_text_is_refused(repo):
    (repo / ".crew.toml").write_bytes(b"\xff\xfe[run]")
    with pytest.raises(UsageError):
        load_settings(repo)


def test_an_agent_with_a_template_is_a_command(repo):
    agents = root(
        repo,
        """
        [agents.my-agent]
        command_template = "my-cli {{.Args}} {{.Prompt}}"
        args = "--flag 'two words'"
        prompt_via = "stdin"
        env = { A = "1" }
        exclude_patterns = [".cache/"]
        [agents.plain]
        command = "tool"
        """,
    ).agents
    agent = agents.named("my-agent")
    assert (agent.name, agent.adapter, agent.role) == ("my-agent", "command", "worker")
    assert agent.args == ("--flag", "two words")
    assert (agent.env, agent.exclude_patterns) == ({"A": "1"}, (".cache/",))
    assert agents.named("plain").adapter == "command"


def test_an_agent_inherits_what_it_does_not_say(repo):
    agents = root(
        repo,
        """
        [agents.claude]
        default_model = "opus"
        env = { A = "1", B = "2" }
        [agents.architect]
        inherit = "claude"
        prompt = "Think first."
        env = { B = "3" }
        role = "manager"
        [agents.deep]
        inherit = "architect"
        command = "claude-wrapper"
        [agents.other]
        inherit = "claude"
        command_template = "x {{.Prompt}}"
        """,
    ).agents
    architect = agents.named("architect")
    assert (architect.adapter, architect.default_model) == ("claude", "opus")
    assert architect.env == {"A": "1", "B": "3"}
    deep = agents.named("deep")
    assert (deep.adapter, deep.command, deep.prompt) == ("claude", "claude-wrapper", "Think first.")
    assert deep.role == "manager"
    assert agents.named("other").adapter == "command"


def test_a_template_wins_over_the_adapter_of_a_lower_layer(repo):
    agents = root(repo, '[agents.claude]\ncommand_template = "x {{.Prompt}}"\n').agents
    assert agents.named("claude").adapter == "command"


ALIKE = {
    "its adapter": "adapter = 'claude'",
    "its command": "command = '/opt/bin/claude'",
    "its template": "command_template = 'LANG=C claude -p {prompt}'",
}


@pytest.mark.parametrize("how", ALIKE.values(), ids=ALIKE)
def test_an_agent_has_the_home_of_its_cli_without_inheriting_from_it(repo, how):
    agents = root(repo, f"[agents.mine]\n{how}\nhome_read = ['notes']\n").agents.by_name
    mine, claude = agents["mine"], agents["claude"]
    assert (mine.home_write, mine.home_copy) == (claude.home_write, claude.home_copy)
    assert mine.first_run == claude.first_run
    assert mine.home_read == ("notes",)
    assert claude.home_write


def test_an_agent_of_another_program_has_no_part_of_the_home(repo):
    agents = root(repo, "[agents.mine]\ncommand_template = 'mine -p {prompt}'\n").agents.by_name
    assert (agents["mine"].home_read, agents["mine"].home_write) == ((), ())


def test_agents_that_inherit_in_a_circle_are_shown(repo):
    text = "[agents.a]\ninherit='b'\n[agents.b]\ninherit='c'\n[agents.c]\ninherit='b'\n"
    assert "b → c → b" in mistake(repo, text)


def test_inheriting_from_nobody_is_refused(repo):
    assert "there are: a, claude, " in mistake(repo, "[agents.a]\ninherit = 'ghost'\n")
    assert "did you mean codex?" in mistake(repo, "[agents.a]\ninherit = 'codx'\n")


def test_an_agent_that_says_nothing_to_run_is_refused(repo):
    assert "command_template" in mistake(repo, "[agents.a]\ndescription = 'x'\n")


def test_an_agent_that_is_not_there_names_the_nearest():
    with pytest.raises(NotFound) as unknown:
        merged_settings(()).agents.named("claud")
    assert "did you mean claude?" in unknown.value.hint


def test_the_older_tables_for_workers_and_managers_are_read(repo):
    agents = root(
        repo,
        """
        [workers.fast]
        agent = "claude"
        default_model = "haiku"
        [managers.boss]
        agent = "claude"
        """,
    ).agents
    assert (agents.named("fast").role, agents.named("fast").default_model) == ("worker", "haiku")
    assert (agents.named("boss").role, agents.named("boss").adapter) == ("manager", "claude")


def test_the_settings_of_channels_have_the_names_of_their_document_too(repo):
    channel = root(
        repo,
        """
        [turnConfig]
        defaultTimeoutSeconds = 90
        humanInterruptMode = "queue"
        announceTimeouts = false
        announceDisconnects = false
        autoDetectTurnEnd = true
        autoDetectSilenceSeconds = 7
        """,
    ).channel
    assert (channel.timeout_s, channel.interrupt, channel.auto_detect_silence_s) == (90, "queue", 7)
    assert (channel.announce_timeouts, channel.announce_disconnects) == (False, False)
    assert channel.auto_detect_turn_end


def test_a_setting_of_channels_under_two_names_has_the_value_of_its_own_one(repo):
    both = '[channel]\ntimeoutAt = "5s"\ntimeout = "6s"\n[turnConfig]\ntimeoutSeconds = 7\n'
    assert root(repo, both).channel.timeout_s == 6
    assert root(repo, '[channel]\ntimeoutAt = "5s"\n').channel.timeout_s == 5


@pytest.mark.parametrize("table", ["agents", "workers"])
def test_the_setup_script_of_an_agent_has_the_name_of_its_document_too(repo, table):
    script = f'[{table}.mine]\ninherit = "claude"\nworktree_setup_script = "cd {{{{.Worktree}}}}"\n'
    assert root(repo, script).agents.named("mine").setup_script == "cd {{.Worktree}}"
    both = f'{script}setup_script = "make"\n'
    assert root(repo, both).agents.named("mine").setup_script == "make"
    told = mistake(repo, script.replace(".Worktree", ".Nowhere"))
    assert ("agents.mine.setup_script" in told, ":3" in told) == (True, table == "agents")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[turnConfig]\nhumanInterruptMode = 'shout'\n", [":2", "channel.interrupt"]),
        ("[channel]\n\ntimeoutAt = true\n", [":3", "channel.timeout"]),
        ("[turnConfig]\nhumanInteruptMode = 'queue'\n", [":2", "humanInteruptMode"]),
        ("turnConfig = 3\n", [":1", "turnConfig"]),
    ],
)
def test_a_mistake_under_another_name_is_found_where_it_stands(repo, text, words):
    told = mistake(repo, text)
    assert all(word in told for word in words), told


def test_older_tables_that_make_no_sense_are_refused(repo):
    assert "workers" in mistake(repo, "[workers]\ndefault = 'x'\n")


def test_the_line_of_a_key_is_found_wherever_it_stands():
    text = '# run\n[a]\nx = 1\n[a."b.c"]\n"y z" = 2\n[d]\nb.x = 3\ne = { f = 1 }\n'
    assert line_of(text, ("a", "x")) == 3
    assert line_of(text, ("a", "b.c", "y z")) == 5
    assert line_of(text, ("d", "b", "x")) == 7
    assert line_of(text, ("d", "e", "f")) == 8
    assert line_of(text, ("a", "b.c")) == 4
    assert line_of(text, ("nowhere",)) is None


def test_every_table_of_the_settings_has_its_keys():
    tables = {**model.TABLES, "agents": model.AgentsSettings, "tui": model.TuiSettings}
    assert set(tables) | {"roles"} == set(model.Settings.__dataclass_fields__)
    assert all(readers(table) for table in tables.values())


def test_an_agent_in_a_pane_has_its_own_templates_or_the_one_it_was_given(repo):
    agents = root(
        repo,
        """
        [agents.mine]
        command_template = "my-cli {{.Prompt}}"
        [agents.both]
        inherit = "claude"
        command_template = "once {{.Prompt}}"
        interactive_template = "stay {{.Prompt}}"
        [agents.child]
        inherit = "claude"
        default_model = "opus"
        [agents.plain]
        command = "tool"
        """,
    ).agents
    assert agents.named("mine").interactive_template == "my-cli {{.Prompt}}"
    assert not agents.named("mine").interactive_resume
    assert agents.named("both").interactive_template == "stay {{.Prompt}}"
    assert not agents.named("both").interactive_resume
    child = agents.named("child")
    assert "--session-id {{.Session}}" in child.interactive_template
    assert "--resume {{.Session}}" in child.interactive_resume
    assert agents.named("plain").interactive_template is None


def test_the_six_files_are_read_in_their_order_and_variables_win(repo, monkeypatch):
    own = repo / "home/.config/crew"
    own.mkdir(parents=True)
    files = [
        own / "config.toml",
        own / "config.override.toml",
        repo / ".crew.toml",
        repo / ".crew/config.toml",
        repo / ".crew/config.runtime.toml",
    ]
    for number, file in enumerate(files, start=101):
        file.write_text(f"[run]\nagents = {number}\n")
        assert load_settings(repo).run.agents == number
    monkeypatch.setenv("CREW_RUN_AGENTS", "200")
    assert load_settings(repo).run.agents == 200
    for file in files:
        file.unlink()
    monkeypatch.delenv("CREW_RUN_AGENTS")
    assert load_settings(repo) == merged_settings(())


def test_the_users_config_is_where_xdg_says(repo, monkeypatch):
    folder = repo / "elsewhere/crew"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[run]\nagents = 'x'\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))
    with raises_code(UsageError, "invalid_value", str(folder)):
        load_settings(repo)
    monkeypatch.setenv("XDG_CONFIG_HOME", "not/absolute")
    assert load_settings(repo) == merged_settings(())
    monkeypatch.delenv("HOME")
    assert load_settings(repo) == merged_settings(())


def test_a_mistake_in_the_users_config_names_it_below_the_home(repo):
    own = repo / "home/.config/crew"
    own.mkdir(parents=True)
    (own / "config.override.toml").write_text("[run]\n\nagnts = 3\n")
    with pytest.raises(UsageError) as refused:
        load_settings(repo)
    assert refused.value.message.startswith("~/.config/crew/config.override.toml:3: run.agnts")


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("CREW_RUN_MAX_STEPS", "5", "run.max_steps", 5),
        ("CREW_RUN_STEP_TIMEOUT", "2h", "run.step_timeout_s", 7200),
        ("CREW_RUN_STEP_TIMEOUT", "90", "run.step_timeout_s", 90),
        ("CREW_RUN_BACKOFF_S", "0.5", "run.backoff_s", 0.5),
        ("CREW_RUN_RECOVERY", "reset", "run.recovery", "reset"),
        ("CREW_COMPLETE_COMMAND", "make -k 'x'", "complete.command", "make -k 'x'"),
        ("CREW_COMPLETE_COMMAND", "5", "complete.command", "5"),
        ("CREW_COMPLETE_SKIP_REVIEW", "yes", "complete.skip_review", True),
        ("CREW_WORKTREE_KEEP", "0", "worktree.keep", False),
        ("CREW_WORKTREE_COPY", "a, b,,c", "worktree.copy", ("a", "b", "c")),
        ("CREW_SANDBOX_NETWORK", "off", "sandbox.network", False),
        ("CREW_SANDBOX_NETWORK", "x.org", "sandbox.network", ("x.org",)),
        ("CREW_SANDBOX_NETWORK", "x.org, *.y.org:1", "sandbox.network", ("x.org", "*.y.org:1")),
        ("CREW_SANDBOX_NETWORK", "[]", "sandbox.network", ()),
        ("CREW_WORKTREE_COPY", '["a, b"]', "worktree.copy", ("a, b",)),
        ("CREW_REVIEW_AGENT", "claude", "review.agents", ("claude",)),
        ("CREW_REVIEW_AGENT", "claude,codex", "review.agents", ("claude", "codex")),
        ("CREW_AGENTS_WORKER_DEFAULT", "codex", "agents.worker_default", "codex"),
        ("CREW_RUN_MAX_STEPS", "", "run.max_steps", 20),
    ],
)
def test_a_variable_sets_its_key(repo, variable, value, field, expected):
    settings = load_settings(repo, {variable: value})
    assert operator.attrgetter(field)(settings) == expected


@pytest.mark.parametrize(
    ("variable", "value", "hint"),
    [
        ("CREW_RUN_MAX_STEPS", "many", "a whole number of at least 1"),
        ("CREW_RUN_MAX_STEPS", "5\nx = 3", "a whole number"),
        ("CREW_RUN_RECOVERY", "maybe", '"resume", "reset"'),
        ("CREW_WORKTREE_KEEP", "perhaps", "true or false"),
        ("CREW_SANDBOX_NETWORK", "flase", "true, false or a list of hosts"),
        ("CREW_SANDBOX_NETWORK", "[1]", "true, false or a list of hosts"),
        ("CREW_SANDBOX_NETWORK", "http://x.org", "without a scheme and a path"),
        ("CREW_WORKTREE_COPY", "[1]", "a list of texts"),
        ("CREW_DIFF_COMMAND", "x {{.Arg}}", "{{.Args}}"),
    ],
)
def test_a_bad_variable_is_named(repo, variable, value, hint):
    with pytest.raises(UsageError) as refused:
        load_settings(repo, {variable: value})
    assert refused.value.message.startswith(f"{variable}: ")
    assert hint in refused.value.hint


def test_what_crew_tells_its_agents_is_no_config(repo):
    names = (
        "TASK_ID TASK_TITLE AGENT RUN_ID ROUND STEP ROLE WORKTREE REPO PROMPT_FILE MCP_URL TOKEN "
        "SESSION OWNER REQUIRE_ALL CRASH_AT BRANCH BASE_BRANCH GIT_DIR REASON MERGE_COMMIT "
        "STATE_DIR SCRIPT DONE_WORD RESUME COMMIT RUN_MAX_STEPZ AGENTS_CLAUDE"
    )
    told = {f"CREW_{name}": "?" for name in names.split()}
    assert load_settings(repo, told) == merged_settings(())


def test_an_agents_role_keeps_its_flags_when_args_are_set(repo):
    agents = root(repo, '[agents.codex-reviewer]\nargs = "--verbose"\n').agents
    assert agents.named("codex-reviewer").args == ("-c", "sandbox_mode=read-only", "--verbose")
    older = '[workers.w]\nagent = "codex"\nsystem_args = "--x"\n'
    assert root(repo, older).agents.named("w").args == ("--x",)


@pytest.mark.parametrize("cli", ["claude", "codex", "opencode", "gemini"])
def test_every_built_in_cli_is_a_worker_a_reviewer_and_a_manager(cli):
    agents = merged_settings(()).agents
    roles = {"": "worker", "-reviewer": "reviewer", "-manager": "manager"}
    for ending, role in roles.items():
        agent = agents.named(f"{cli}{ending}")
        assert (agent.role, agent.command) == (role, cli)
        assert agent.description
        assert "{{.Prompt}}" in agent.interactive_template
        assert agent.interactive_resume
        assert agent.adapter == cli
    assert agents.named(f"{cli}-reviewer") != agents.named(f"{cli}-manager")


def test_a_role_of_the_config_says_how_long_it_keeps_its_session(repo):
    assert (
        root(repo, '[roles.codeweaver]\nsession = "quest"').roles["codeweaver"].session == "quest"
    )
    with raises_code(UsageError, "invalid_value", "roles.codeweaver.session") as refused:
        root(repo, '[roles.codeweaver]\nsession = "for ever"')
    assert "item" in refused.value.hint
    assert "quest" in refused.value.hint


# Keys that nothing reads yet

PROMISES = [(table, key) for table, keys in NOT_YET.items() for key in keys]


@pytest.mark.parametrize(("table", "key"), PROMISES)
def test_a_key_that_is_not_supported_yet_is_refused_by_name(repo, table, key):
    with pytest.raises(UsageError) as refused:
        root(repo, f"[{table}]\n{key} = 1\n")
    assert f".crew.toml:2: {table}.{key}" in refused.value.message
    assert refused.value.code == "unsupported_key"
    variable = f"CREW_{table}_{key}".upper()
    with pytest.raises(UsageError) as refused:
        load_settings(repo / "elsewhere", {variable: "1"})
    assert refused.value.message.startswith(f"{variable}: {table}.{key} is not supported")


def test_an_empty_table_of_such_keys_promises_nothing(repo):
    root(repo, "[budget]\n[cluster]\n[gate]\n")
    with raises_code(UsageError, "unknown_key", "budget.foo"):
        root(repo, "[budget]\nfoo = 1\n")


def test_no_key_is_both_supported_and_not():
    assert not [path for path in PROMISES if has_key(path)]


def test_a_command_that_is_no_text_is_named(repo):
    assert "agents.x.command" in mistake(repo, "[agents.x]\ncommand = 3\n")


def test_an_agent_may_set_its_own_price(repo):
    text = "[agents.codex]\nprice_input = 2\nprice_output = 8.5\n"
    agents = root(repo, text).agents.by_name
    assert prices_for(agents["codex"]) == {"": Price(input=2.0, cached_input=2.0, output=8.5)}
    cached = root(repo, f"{text}price_cached_input = 0\n").agents.by_name
    assert prices_for(cached["codex"])[""].cached_input == 0.0
    assert prices_for(agents["gemini"]) == listed_prices()


def test_half_a_price_is_refused(repo):
    assert "only one of price_input" in mistake(repo, "[agents.codex]\nprice_input = 2\n")


# The terminal view

SEED = """
[tui.keybindings]
"ctrl+r" = { command = "crew run-review {{.TaskID}}", description = "Run review script" }
"""


def test_a_key_of_the_view_is_written_as_seed_001_writes_it(repo):
    bound = root(repo, SEED).tui.keybindings
    assert bound == {
        "ctrl+r": KeyBinding(
            key="ctrl+r", command="crew run-review {{.TaskID}}", description="Run review script"
        )
    }
    more = "[tui.keybindings]\nm = { command = 'a', override = true, worktree = true }\n"
    assert root(repo, more).tui.keybindings["m"] == KeyBinding(
        key="m", command="a", override=True, worktree=True
    )


@pytest.mark.parametrize("name", PLACE_NAMES)
def test_a_command_of_the_view_may_use_every_place(repo, name):
    text = f"[tui.keybindings]\nx = {{ command = 'a {{{{.{name}}}}}' }}\n"
    assert root(repo, text).tui.keybindings["x"].command == f"a {{{{.{name}}}}}"


def test_layers_add_up_the_keys_of_the_view(repo):
    (repo / ".crew/config.toml").write_text(
        "[tui.keybindings]\n'CTRL+R'.override = true\n'ctrl+r'.worktree = true\nf5.command = 'b'\n"
    )
    bound = root(repo, SEED).tui.keybindings
    assert set(bound) == {"ctrl+r", "f5"}
    assert bound["ctrl+r"].worktree


@pytest.mark.parametrize(
    ("written", "name"),
    [
        *(("ctrl+r", "ctrl+r"), ("CTRL+R", "ctrl+r"), ("X", "X"), ("shift+x", "X"), ("f5", "f5")),
        *(("esc", "escape"), (" ", "space"), ("pgdown", "pagedown"), ("ctrl++", "ctrl++")),
        *(("alt+shift+up", "alt+shift+up"), ("?", "?"), ("+", "+"), ("ü", "ü")),
        *(("ctrl-r", None), ("", None), ("ctrl+", None), ("f99", None), ("strg+r", None)),
        *(("ctrl+ctrl+r", None), ("\x1b", None), ("ab", None)),
    ],
)
def test_a_key_has_one_name(written, name):
    assert key_name(written) == name


def test_the_choices_of_the_view_are_keys_of_the_config(repo):
    view = load_settings(repo).tui
    assert (view.group, view.sort, view.filter, view.everything) == ("state", "id", "", False)
    changed = load_settings(repo, {"CREW_TUI_SORT": "newest", "CREW_TUI_EVERYTHING": "yes"}).tui
    assert (changed.sort, changed.everything) == ("newest", True)
