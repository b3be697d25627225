"""A run of each CLI leaves the settings of the person as they are, byte for byte."""

import json
from pathlib import Path

import pytest

from real_clis.scripted_model import Say

pytestmark = pytest.mark.timeout(240)

GEMINI = (
    '{"security": {"auth": {"selectedType": "gemini-api-key"}},   "privacy":\n'
    '  {"usageStatisticsEnabled": false},  "ui": {"theme": "GitHub"}} // mine\n'
)
SETTINGS = {
    ".claude.json": '{"theme":   "light", "numStartups": 7, "projects": {}}',
    ".claude/settings.json": '{"includeCoAuthoredBy":   false}',
    ".claude/CLAUDE.md": "seen-own\n",
    ".codex/config.toml": '# mine\nmodel_reasoning_effort   = "low"\n',
    ".codex/AGENTS.md": "seen-own\n",
    ".config/opencode/opencode.json": '{"$schema": "x",   "theme": "system"}',
    ".config/opencode/AGENTS.md": "seen-own\n",
    ".gemini/settings.json": GEMINI,
    ".gemini/GEMINI.md": "seen-own\n",
    ".gemini/trustedFolders.json": "{}",
}


@pytest.mark.clis
@pytest.mark.ability("leaves the settings in your home as they are")
def test_a_run_changes_no_settings_of_the_person(cli, crew, script, caller):
    home = Path(caller["HOME"])
    for name, text in SETTINGS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    if cli.name != "claude":
        crew.use(cli)
    work = "echo hello > new.txt && git add new.txt && git commit -qm 'add new.txt'"
    play = script(cli.run(work), Say("DONE"))
    crew("new", "--title", "Write new.txt")
    crew("run", "--agents", "1", "--agent", cli.name, "--drain")
    assert "seen-own" in json.dumps(play.turns[0].body)  # and they hold
    assert {name: (home / name).read_text() for name in SETTINGS} == SETTINGS
