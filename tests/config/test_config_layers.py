"""The config: what holds by default, who wins, and what a mistake is told as."""

import os

import pytest

from crew.config import model
from crew.config.checking import readers
from crew.config.layers import default_settings, load_settings
from crew.config.toml_text import line_of
from crew.domain.errors import NotFound, UsageError


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
    assert settings == default_settings()
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
    assert {name: agent.adapter for name, agent in settings.agents.by_name.items()} == {
        "claude": "claude",
        "scripted": "scripted",
    }


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
        [budget]
        task_usd = 1
        quest_usd = 2.5
        day_usd = 3
        crew_usd = 4
        step_tokens = 1000
        [sandbox]
        mode = "off"
        allow_read = ["/a"]
        allow_write = ["/b"]
        network = false
        [log]
        level = "warning"
        [diff]
        command = "git diff"
        [notify]
        urls = ["https://example.org"]
        command = "notify-send"
        [cluster]
        server = "host:1"
        namespace = "n"
        remote = "origin"
        [tui.keybindings]
        "ctrl+r" = { command = "crew review {{.TaskID}}", description = "Review" }
        """,
    )
    assert settings.review.agents == ("a", "b")
    assert settings.complete.timeout_s == 30
    assert settings.budget.task_usd == 1.0
    assert settings.keybindings["ctrl+r"].command == "crew review {{.TaskID}}"
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
        ("[run]\nmax_steps = 0\n", ["run.max_steps is 0", "from 1 on"]),
        ("[run]\nbackoff_s = -1\n", ["run.backoff_s", "from 0 on"]),
        ("[run]\nbackoff_s = nan\n", ["run.backoff_s", "from 0 on"]),
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
        ("[tui.keybindings]\nx = { description = 'd' }\n", [":2", "tui.keybindings.x", "command"]),
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


def test_agents_that_inherit_in_a_circle_are_shown(repo):
    text = "[agents.a]\ninherit='b'\n[agents.b]\ninherit='c'\n[agents.c]\ninherit='b'\n"
    assert "b → c → b" in mistake(repo, text)


def test_inheriting_from_nobody_is_refused(repo):
    assert "there are: a, claude, scripted" in mistake(repo, "[agents.a]\ninherit = 'ghost'\n")


def test_an_agent_that_says_nothing_to_run_is_refused(repo):
    assert "command_template" in mistake(repo, "[agents.a]\ndescription = 'x'\n")


def test_an_agent_that_is_not_there_names_the_nearest():
    with pytest.raises(NotFound) as unknown:
        default_settings().agents.named("claud")
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
    tables = {**model.TABLES, "agents": model.AgentsSettings}
    assert set(tables) | {"keybindings"} == set(model.Settings.__dataclass_fields__)
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
