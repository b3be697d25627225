"""Setting up from the command line: init, doctor, config, agents, completion."""

import os
import re
import shutil
import sqlite3
import subprocess
import tomllib

import pytest

from crew.config.model import TABLES, TuiSettings
from crew.config.validate_config import readers
from front.conftest import PATIENCE_S


def test_a_plain_directory_is_a_usage_error(scene, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    for command in ("init", "list", "ps", "run", "new --title x", "spawn", "events", "config show"):
        scene.refused(2, "no_repository", *command.split(), cwd=plain)
    assert scene.crew("-C", str(tmp_path / "nowhere"), "ps").code == 2


def test_a_repository_without_a_crew_says_how_to_make_one(bare_scene):
    for command in ("list", "ps", "run", "spawn", "events", "dashboard", "clean --yes"):
        assert "`crew init`" in bare_scene.refused(2, "no_crew", *command.split()).hint
    doctor = bare_scene.crew("doctor")
    assert (doctor.code, "crew init" in doctor.out) == (1, True)
    assert not (bare_scene.root / ".crew").exists()


def test_init_says_what_it_found_and_may_be_repeated(bare_scene):
    (bare_scene.root / "Makefile").write_text("test:\n\ttrue\n")
    said = bare_scene.ok("init")
    assert "make test" in said.out
    assert "target:  main" in said.out
    bare_scene.ok("new", "--title", "x")
    bare_scene.ok("init")
    assert [t["id"] for t in bare_scene.ok("list", "--json").json] == ["1"]
    assert bare_scene.git("status", "--porcelain", "--", ".crew").startswith("?? .crew/")
    tracked = bare_scene.git("status", "--porcelain", "-uall", "--", ".crew").splitlines()
    assert all(".crew/tasks/" in line for line in tracked)
    found = bare_scene.ok("init", "--json").json
    assert found["gate"]["command"] == "make test"
    assert found["target"] == "main"


def test_init_refuses_other_tasks_before_it_changes_anything(scene):
    scene.ok("new", "--title", "one")
    scene.plan("1", "fail")
    scene.crew("run", "--drain")
    config = (scene.root / ".crew/config.toml").read_text()
    refused = scene.refused(5, "other_tasks", "init", "--tasks", "tk")
    assert "`crew clean`" in refused.hint
    assert (scene.root / ".crew/config.toml").read_text() == config
    scene.ok("list")
    scene.ok("init", "--tasks", "files")
    scene.ok("clean", "--yes")
    assert scene.ok("init", "--tasks", "tk", "--json").json["tasks"] == "tk"
    assert scene.ok("list", "--json").json == []


def test_each_way_out_of_a_config_with_other_tasks_works(scene):
    scene.ok("new", "--title", "one")
    scene.plan("1", "fail")
    scene.crew("run", "--drain")
    scene.ok("config", "set", "tasks.source", "tk")
    refused = scene.refused(5, "other_tasks", "list")
    assert "`crew config set tasks.source files`" in refused.hint
    scene.refused(5, "other_tasks", "run", "--drain")
    scene.ok("config", "set", "tasks.source", "files")
    assert [one["status"] for one in scene.ok("list", "--json").json] == ["in_progress"]
    scene.ok("config", "set", "tasks.source", "tk")
    assert scene.ok("clean", "--yes", "--json").json["tasks"] == ["1"]
    assert (scene.status("1"), scene.ok("list", "--json").json) == ("todo", [])


def test_init_keeps_the_rest_of_a_config(bare_scene):
    (bare_scene.root / ".crew").mkdir()
    config = bare_scene.root / ".crew" / "config.toml"
    config.write_text('[tasks] # mine\nnamespace = "n"\n[run]\nagents = 5\n')
    bare_scene.ok("init", "--tasks", "tk")
    bare_scene.ok("init", "--tasks", "tk")
    assert (
        config.read_text() == '[tasks] # mine\nnamespace = "n"\nsource = "tk"\n[run]\nagents = 5\n'
    )
    bare_scene.ok("init", "--tasks", "files")
    assert 'source = "files"' in config.read_text()
    assert bare_scene.crew("init", "--tasks", "paper").code == 2


def test_a_repository_without_commits_is_refused(tmp_path, bare_scene):
    empty = tmp_path / "empty"
    subprocess.run(["git", "init", "-q", empty], check=True)
    bare_scene.refused(2, "no_commits", "init", cwd=empty)


def test_a_typo_in_the_config_names_the_nearest_key(scene):
    scene.configure("[merge]\nstratgy = 1\n")
    for command in ("list", "run"):
        refused = scene.refused(2, "unknown_key", command)
        assert "config.toml" in refused.message
        assert "strategy" in refused.hint
    assert scene.crew("doctor").code == 1


def test_config_shows_values_and_where_they_come_from(scene):
    assert scene.ok("config", "get", "run.agents").out == "1\n"
    assert scene.ok("config", "get", "agents.worker_default").out == "sh\n"
    assert scene.ok("config", "get", "run.step_timeout", "--json").json == "30m"
    assert scene.ok("--json", "config", "show").json["run"]["agents"] == 1
    origins = {e["key"]: e["origin"] for e in scene.ok("config", "show", "--origin", "--json").json}
    assert origins["run.agents"] == ".crew/config.toml"
    assert origins["run.max_steps"] == "built-in"
    assert scene.ok("config", "get", "merge.slots").code == 0
    shown = scene.ok("config", "show", "--origin", CREW_RUN_MAX_STEPS="7").out
    assert "agents = 1  # .crew/config.toml:2\n" in shown
    assert "max_steps = 7  # CREW_RUN_MAX_STEPS\n" in shown
    assert 'recovery = "resume"  # built-in\n' in shown
    assert tomllib.loads(shown)["run"]["max_steps"] == 7
    assert "[run]" in scene.ok("config", "show").out
    assert "run.agents" in scene.refused(3, "not_found", "config", "get", "run.agnts").hint


def test_config_get_prints_what_an_agent_inherits(scene):
    scene.configure('[agents.mine]\ninherit = "claude-reviewer"\ndefault_model = "opus"\n')
    assert scene.ok("config", "get", "agents.mine.command").out == "claude\n"
    assert scene.ok("config", "get", "agents.mine.role", "--json").json == "reviewer"
    whole = scene.ok("config", "get", "agents.mine", "--json").json
    assert (whole["default_model"], whole["adapter"]) == ("opus", "claude")
    missing = scene.refused(3, "not_found", "config", "get", "agents.mine.prompt")
    assert "crew config set agents.mine.prompt" in missing.hint


def test_a_bad_variable_is_a_usage_error_that_names_it(scene):
    refused = scene.refused(2, "invalid_value", "list", CREW_RUN_AGENTS="some")
    assert "CREW_RUN_AGENTS" in refused.message


def test_config_set_changes_one_value_and_says_what_holds(scene):
    config = scene.root / ".crew" / "config.toml"
    before = "# mine\n" + config.read_text().replace("agents = 1", "agents = 1  # one")
    config.write_text(before)
    said = scene.ok("config", "set", "run.agents", "4")
    assert said.out == "run.agents = 4  # .crew/config.toml:3\n"
    assert config.read_text() == before.replace("agents = 1 ", "agents = 4 ")
    assert scene.ok("config", "get", "run.agents").out == "4\n"
    own = scene.ok("config", "set", "--user", "run.agents", "9")
    assert own.out == said.out
    assert "~/.config/crew/config.toml has 9, but a later layer overrides it" in own.err
    changed = scene.ok("config", "set", "run.agents", "5", "--json", CREW_RUN_AGENTS="8").json
    assert changed == {
        "key": "run.agents",
        "value": 8,
        "origin": "CREW_RUN_AGENTS",
        "line": None,
        "file": ".crew/config.toml",
        "written": 5,
        "overridden": True,
        "takes_effect": "now",
    }
    scene.ok("config", "set", "--root", "agents.sh.default_model", "--", "-big")
    assert (scene.root / ".crew.toml").read_text() == '[agents.sh]\ndefault_model = "-big"\n'
    assert scene.ok("agents", "--json").json[-1]["model"] == "-big"
    assert " agents?" in scene.refused(2, "unknown_key", "config", "set", "run.agnts", "4").hint


@pytest.mark.parametrize("where", [(), ("--root",)])
def test_config_set_without_a_crew_is_refused_and_writes_nothing(bare_scene, where):
    """A half-made `.crew` would be in nobody's exclude file, and `git status` would show it."""
    refused = bare_scene.refused(2, "no_crew", "config", "set", "run.agents", "2", *where)
    assert "`crew init`" in refused.hint
    assert bare_scene.git("status", "--porcelain", "--ignored") == ""
    assert not (bare_scene.root / ".crew").exists()
    bare_scene.ok("config", "set", "--user", "run.agents", "2")
    assert bare_scene.git("status", "--porcelain", "--ignored") == ""


def test_config_set_beside_a_runner_says_when_the_runner_uses_it(scene, running):
    """As `docs/configuration.md` has it: agents from the next task, the rest after a restart."""
    assert scene.ok("config", "set", "run.max_steps", "7").err == ""
    pid = running().pid
    said = scene.ok("config", "set", "run.max_steps", "8").err
    assert f"(pid {pid}) keeps the value it started with; to apply the new one: `crew stop`" in said
    said = scene.ok("config", "set", "agents.sh.default_model", "big").err
    assert f"(pid {pid}) uses it from the next task" in said
    assert (
        scene.ok("config", "set", "tasks.new_task_base", "default").err == "it is in effect now\n"
    )
    changed = scene.ok("config", "set", "run.agents", "2", "--json", CREW_RUN_AGENTS="8")
    assert (changed.json["takes_effect"], "goes on" in changed.err) == ("next_runner", False)


def test_ones_own_config_is_set_outside_any_repository(scene, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    assert scene.crew("config", "set", "run.agents", "2", cwd=plain).code == 2
    said = scene.ok("config", "set", "--user", "run.max_steps", "2", cwd=plain)
    assert said.out == "run.max_steps = 2  # ~/.config/crew/config.toml:2\n"
    assert scene.ok("config", "get", "run.max_steps").out == "2\n"


def test_the_config_template_changes_nothing(scene):
    template = scene.ok("config", "template").out
    assert "# agents = 3" in template
    (scene.root / ".crew.toml").write_text(template)
    assert scene.ok("config", "get", "run.agents").out == "1\n"


def test_the_config_template_has_every_key_there_is(scene):
    template = scene.ok("config", "template", "--json").json["template"]
    assert template == scene.ok("config", "template").out
    lines = template.partition("\n[agents.claude]")[0].splitlines()
    values = [re.sub(r"^# (?=\S+ = )", "", text) for text in lines]
    (scene.root / ".crew" / "config.toml").write_text("\n".join(values))
    said = scene.ok("config", "show", "--json").json
    for table, model in TABLES.items():
        assert set(said[table]) == set(readers(model)), table
    assert set(said["tui"]) == {*readers(TuiSettings), "keybindings"}


def test_a_key_without_a_value_is_told_how_it_gets_one(scene):
    for key in ("complete.command", "merge.target", "agents.sh.default_model"):
        refused = scene.refused(3, "not_found", "config", "get", key)
        assert f"`crew config set {key} …`" in refused.hint
    scene.refused(3, "key_not_supported", "config", "get", "budget.day_usd")
    refused = scene.refused(3, "not_found", "config", "get", "complete.timeou")
    assert " complete.timeout?" in refused.hint


def test_doctor_tells_of_tmux_and_does_without_it(scene, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))

    def tmux(path: str) -> dict[str, str]:
        (found,) = [f for f in scene.ok("doctor", "--json", PATH=path).json if f["check"] == "tmux"]
        return found

    without = tmux(str(tools))
    assert "tmux is not installed" in without["message"]
    assert "install tmux" in without["fix"]
    for version, is_fine in (("3.4", True), ("2.1", False)):
        (tools / "tmux").write_text(f"#!/bin/sh\necho tmux {version}\n")
        (tools / "tmux").chmod(0o755)
        found = tmux(str(tools))
        assert found["message"].startswith(f"tmux {version}")
        assert bool(found["fix"]) is not is_fine


def test_agents_are_listed_with_whether_they_are_installed(scene):
    agents = {a["name"]: a for a in scene.ok("agents", "--json").json}
    assert agents["sh"]["installed"] is True
    assert agents["sh"]["default"] is True
    assert agents["sh"]["path"].startswith("/")
    assert agents["sh"]["default_for"] == ["worker"]
    assert agents["claude-reviewer"]["default_for"] == ["reviewer"]
    assert agents["claude-manager"]["default_for"] == ["manager"]
    assert set(agents["sh"]) >= {"name", "role", "model", "adapter", "installed", "description"}
    assert "sh *" in scene.ok("agents").out
    scene.configure('[agents.ghost]\ncommand_template = "no-such-program"\n')
    assert "no: no-such-program is missing" in scene.ok("agents").out


def test_doctor_is_content_with_a_sound_crew(scene):
    said = scene.ok("doctor", "--json")
    assert {finding["state"] for finding in said.json} == {"ok"}
    assert {"git", "config", "sandbox", "agents", "database", "tasks"} <= {
        finding["check"] for finding in said.json
    }


def test_doctor_finds_what_is_wrong_with_tasks_and_says_the_fix(scene):
    for _ in range(3):
        scene.ok("new", "--title", "x")
    scene.ok("dep", "2", "1")
    folder = scene.root / ".crew/tasks/default"
    (folder / "1.crew.json").write_text('{"deps": ["2", "9"]}')
    (folder / "3.meta.json").write_text("{")
    said = scene.crew("doctor")
    assert said.code == 1
    assert "1 → 2 → 1" in said.out
    assert "crew undep 1 9" in said.out
    assert "crew rm 3" in said.out


def test_doctor_repairs_rows_that_are_not_what_their_facts_say(scene):
    scene.ok("spawn")
    db = sqlite3.connect(scene.root / ".crew/crew.db")
    db.execute("UPDATE rows SET value = replace(value, 'idle', 'stuck')")
    db.commit()
    db.close()
    assert scene.ok("ps", "--json").json[0]["status"] == "stuck"
    said = scene.crew("doctor")
    assert said.code == 1
    assert "agent:A" in said.out
    scene.ok("doctor", "--repair")
    assert scene.ok("ps", "--json").json[0]["status"] == "idle"


def changed_database(scene, *statements):
    db = sqlite3.connect(scene.root / ".crew/crew.db")
    for statement in statements:
        db.execute(statement)
    db.commit()
    db.close()


@pytest.mark.parametrize("garbage", ["{", "[]", '{"id": 7}'])
def test_doctor_rebuilds_rows_that_cannot_be_read(scene, garbage):
    scene.ok("new", "--title", "one")
    scene.ok("spawn")
    changed_database(scene, f"UPDATE rows SET value = '{garbage}'")
    said = scene.crew("run", "--drain")
    assert said.code == 1
    assert "doctor --repair" in said.err
    assert "fault in crew" not in scene.crew("ps").err
    assert "agent:A" in scene.crew("doctor").out
    scene.ok("doctor", "--repair")
    assert scene.ok("ps", "--json").json[0]["status"] == "idle"
    scene.ok("run", "--drain")
    assert scene.status("1") == "merged"


def test_doctor_keeps_a_row_whose_facts_cannot_be_read_and_names_what_is_lost(scene):
    scene.ok("spawn", "2")
    changed_database(
        scene,
        "UPDATE facts SET changes = '{' WHERE kind = 'agent'",
        "UPDATE rows SET value = '{' WHERE kind = 'agent' AND id = 'B'",
    )
    said = scene.crew("doctor", "--repair")
    assert "the history of agent:A could not be read; its row is kept" in said.out
    assert "agent:B is lost" in said.out
    assert [agent["name"] for agent in scene.ok("ps", "--json").json] == ["A"]
    assert "✗" not in scene.ok("doctor").out


def test_doctor_keeps_and_removes_a_worktree_without_a_task(scene):
    orphan = scene.root.parent / f"{scene.root.name}-worktrees" / "77"
    scene.git("worktree", "add", "-q", "-b", "crew-77", str(orphan))
    (orphan / "precious").write_text("work")
    said = scene.crew("doctor")
    assert said.code == 1
    assert str(orphan) in said.out
    scene.ok("doctor", "--repair")
    assert not orphan.exists()
    into = scene.ok("restore", "77").out.strip()
    assert (orphan.parent / into / "precious").read_text() == "work"


def test_doctor_ends_processes_that_outlived_their_runner(scene):
    scene.ok("doctor")
    db = sqlite3.connect(scene.root / ".crew/crew.db")
    (owner,) = db.execute("SELECT value FROM settings WHERE name = 'repo_id'").fetchone()
    db.close()
    marked = {**os.environ, "CREW_OWNER": f"{owner}/1.1/1/1/1"}
    left = subprocess.Popen(["sleep", "600"], env=marked)
    try:
        said = scene.crew("doctor")
        assert said.code == 1
        assert str(left.pid) in said.out
        scene.ok("doctor", "--repair")
        assert left.wait(timeout=PATIENCE_S) != 0
    finally:
        left.kill()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_crew(scene, shell):
    script = scene.ok("completion", shell).out
    assert "_CREW_COMPLETE" in script
    said = scene.ok("completion", shell, "--json").json
    assert (said["shell"], f"{said['script']}\n") == (shell, script)


def test_completion_offers_tasks_agents_and_commands_live(scene):
    scene.ok("new", "--title", "the title")
    scene.ok("spawn", "Ann")

    def complete(words: str) -> str:
        return scene.crew(
            _CREW_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split()))
        ).out

    assert "plain,1" in complete("crew show ")
    assert "plain,Ann" in complete("crew kill ")
    assert "plain,dashboard" in complete("crew ")
    assert complete("crew assign Ann ").strip() == "plain,1"
    scene.ok("channel", "new", "reviews", "--member", "pm", "--member", "dev")
    scene.ok("channel", "new", "plans", "--member", "boss")
    assert complete("crew channel show ").split() == ["plain,plans", "plain,reviews"]
    for verb in ("remove", "override", "invite"):
        assert sorted(complete(f"crew channel {verb} reviews ").split()) == [
            "plain,dev",
            "plain,pm",
        ]
    assert scene.crew("completion", "tcsh").code == 2
