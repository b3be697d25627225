"""An agent CLI finds its first questions answered, and nothing else in its config changed."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from crew.agents.first_run import answer_first_run
from crew.config.layers.layers import merged_settings

TRUST = {
    "file": ".cli/config.json",
    "key": ["projects", "{{.Worktree}}", "trusted"],
    "value": True,
}
SEEN = {"file": ".cli/config.json", "key": ["seen"], "value": True}
KEY = {
    "file": ".cli/config.json",
    "key": ["keys"],
    "value": {"approved": ["{{.EnvTail}}"], "rejected": []},
    "env": "CLI_KEY",
}
WORKTREE = Path("/w/it's 1/$(id)")


def answer(home, *answers, environ=None, worktree=WORKTREE):
    return answer_first_run(answers, worktree=worktree, home=home, environ=environ or {})


def told(home):
    return json.loads((home / ".cli/config.json").read_text())


def test_answers_are_written_where_there_was_nothing(tmp_path):
    assert answer(tmp_path, TRUST, SEEN, KEY) == ()
    assert told(tmp_path) == {"projects": {str(WORKTREE): {"trusted": True}}, "seen": True}
    assert (tmp_path / ".cli/config.json").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in (tmp_path / ".cli").iterdir()] == ["config.json"]


def test_what_a_person_chose_stays(tmp_path):
    (tmp_path / ".cli").mkdir()
    file = tmp_path / ".cli/config.json"
    own = {"seen": False, "projects": {str(WORKTREE): {"trusted": False}, "/x": {"é": 1}}, "z": [1]}
    file.write_text(json.dumps(own))
    before = file.stat()
    assert answer(tmp_path, TRUST, SEEN) == ()
    assert told(tmp_path) == own
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == (before.st_mtime_ns, before.st_ino)
    answer(tmp_path, {**SEEN, "key": ["more"]})
    assert told(tmp_path) == {**own, "more": True}
    assert list(told(tmp_path)) == ["seen", "projects", "z", "more"]


def test_an_answer_about_a_key_needs_the_key_and_holds_only_its_end(tmp_path):
    secret = "sk-very-secret-0123456789-0123456789"
    answer(tmp_path, KEY, environ={"CLI_KEY": secret})
    assert told(tmp_path) == {"keys": {"approved": [secret[-20:]], "rejected": []}}


@pytest.mark.parametrize(
    "content", [b"{broken", b"[]", b'"x"', b"", b'{"projects": 3}', b"\xff\xfe"]
)
def test_a_file_that_makes_no_sense_is_left_alone_and_named(tmp_path, content):
    (tmp_path / ".cli").mkdir()
    file = tmp_path / ".cli/config.json"
    file.write_bytes(content)
    (problem,) = answer(tmp_path, SEEN, TRUST)
    assert str(file) in problem
    assert file.read_bytes() == content


def test_a_home_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / ".cli").write_text("a file where the folder should be")
    (problem,) = answer(tmp_path, SEEN)
    assert "is unchanged" in problem


def test_a_link_stays_a_link_and_rights_stay(tmp_path):
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    (tmp_path / ".cli").mkdir()
    (tmp_path / ".cli/config.json").symlink_to(real)
    answer(tmp_path, SEEN)
    assert (tmp_path / ".cli/config.json").is_symlink()
    assert json.loads(real.read_text()) == {"seen": True}
    assert real.stat().st_mode & 0o777 == 0o640


def test_many_at_once_lose_nothing(tmp_path):
    def one(number):
        program = (
            "import sys; from pathlib import Path;"
            "from crew.agents.first_run import answer_first_run as a;"
            "w, h = map(Path, sys.argv[1:3]);"
            "t = {'file': 'c.json', 'key': ['p', '{{.Worktree}}', 'ok'], 'value': True};"
            "[a([t], worktree=w / str(n), home=h, environ={}) for n in range(20)]"
        )
        return subprocess.run(
            [sys.executable, "-c", program, f"/w{number}", tmp_path], check=True, timeout=60
        )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(4)))
    assert len(json.loads((tmp_path / "c.json").read_text())["p"]) == 80
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize("point", ["first_run.before", "first_run.after", "first_run_folder.after"])
def test_a_crash_at_any_point_leaves_the_old_or_the_new_file(tmp_path, point):
    (tmp_path / "c.json").write_text('{"mine": 1}')
    program = (
        "import sys; from pathlib import Path;"
        "from crew.agents.first_run import answer_first_run as a;"
        "a([{'file': 'c.json', 'key': ['x'], 'value': 1}],"
        " worktree=Path('/w'), home=Path(sys.argv[1]), environ={})"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    died = subprocess.run(
        command, env={**os.environ, "CREW_CRASH_AT": f"agents.{point}"}, timeout=60, check=False
    )
    assert died.returncode == -9
    assert json.loads((tmp_path / "c.json").read_text()).items() >= {"mine": 1}.items()
    subprocess.run(command, check=True, timeout=60)
    assert json.loads((tmp_path / "c.json").read_text()) == {"mine": 1, "x": 1}


def test_the_built_in_answers_are_those_that_claude_asks_for(tmp_path):
    answers = merged_settings(()).agents.named("claude-reviewer").first_run
    environ = {"ANTHROPIC_API_KEY": "sk-ant-" + "k" * 30}
    assert answer(tmp_path, *answers, environ=environ) == ()
    assert json.loads((tmp_path / ".claude.json").read_text()) == {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "projects": {str(WORKTREE): {"hasTrustDialogAccepted": True}},
        "customApiKeyResponses": {"approved": ["k" * 20], "rejected": []},
    }


def test_a_new_key_joins_those_that_a_person_approved_and_a_rejected_one_stays_rejected(tmp_path):
    (tmp_path / ".cli").mkdir()
    file = tmp_path / ".cli/config.json"
    file.write_text(json.dumps({"keys": {"approved": ["old"], "rejected": ["no"]}}))
    approved = {**KEY, "key": ["keys", "approved"], "value": ["{{.EnvTail}}"]}
    for key in ("new", "new", "no"):
        answer(tmp_path, approved, environ={"CLI_KEY": key})
    assert told(tmp_path) == {"keys": {"approved": ["old", "new"], "rejected": ["no"]}}
