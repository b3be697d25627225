"""`crew completion --install`: the files, the next step, and what a real shell makes of them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from crew.front.cli.completion_files import SHELLS, completion_files
from front.conftest import CREW

NAMES = {
    "bash": ("data/bash-completion/completions/crew", "data/bash-completion/completions/git-crew"),
    "zsh": ("data/zsh/site-functions/_crew", "data/zsh/site-functions/_git-crew"),
    "fish": ("config/fish/completions/crew.fish", "config/fish/completions/git-crew.fish"),
}
CHECKERS = [shell for shell in SHELLS if shutil.which(shell)]


@pytest.fixture
def folders(tmp_path):
    return {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def _changes(said):
    return [one["change"] for one in said.json["files"]]


@pytest.mark.parametrize("shell", SHELLS)
def test_installing_and_removing_may_each_be_repeated(bare_scene, folders, tmp_path, shell):
    def change(option):
        return bare_scene.ok("completion", option, "--json", SHELL=f"/opt/bin/{shell}", **folders)

    first = change("--install")
    paths = [tmp_path / name for name in NAMES[shell]]
    assert [one["path"] for one in first.json["files"]] == [str(path) for path in paths]
    assert first.json["shell"] == shell
    assert (_changes(first), _changes(change("--install"))) == (["written"] * 2, ["unchanged"] * 2)
    assert all(path.stat().st_mode & 0o777 == 0o644 for path in paths)
    paths[0].write_text(paths[0].read_text() + "# of an older version\n")
    assert _changes(change("--install")) == ["written", "unchanged"]
    assert (_changes(change("--uninstall")), _changes(change("--uninstall"))) == (
        ["removed"] * 2,
        ["absent"] * 2,
    )
    assert not any(path.exists() for path in paths)


def test_each_file_and_the_next_step_are_printed(bare_scene, folders, tmp_path):
    said = bare_scene.ok("completion", "--install", "zsh", ZDOTDIR="/dots", **folders)
    assert said.lines == [f"written: {tmp_path / name}" for name in NAMES["zsh"]]
    assert "/dots/.zshrc" in said.err
    assert f"  fpath=({tmp_path / 'data/zsh/site-functions'} $fpath)\n" in said.err
    assert not Path("/dots").exists()
    assert bare_scene.ok("completion", "--uninstall", "zsh", "-q", **folders).err == ""


def test_a_file_of_another_program_is_neither_replaced_nor_removed(bare_scene, folders, tmp_path):
    first, second = (tmp_path / name for name in NAMES["bash"])
    second.parent.mkdir(parents=True)
    second.write_text("complete -W 'other' git-crew\n")
    bare_scene.refused(5, "file_not_ours", "completion", "--install", "bash", **folders)
    assert not first.exists()
    kept = bare_scene.ok("completion", "--uninstall", "bash", "--json", **folders)
    assert _changes(kept) == ["absent", "kept"]
    assert second.read_text() == "complete -W 'other' git-crew\n"


@pytest.mark.parametrize("shell", ["", "/bin/tcsh"])
def test_a_shell_that_cannot_be_told_is_asked_for(bare_scene, shell):
    for option in ("--install", "--uninstall"):
        refused = bare_scene.refused(2, "unknown_shell", "completion", option, SHELL=shell)
        assert "crew completion --install bash" in refused.hint
    assert bare_scene.crew("completion", "bash", "--install", "--uninstall").code == 2


def test_a_kill_between_the_files_is_mended_by_a_repeat(bare_scene, folders):
    killed = bare_scene.crew(
        *("completion", "--install", "bash"),
        CREW_CRASH_AT="front.write_completion.after:1",
        **folders,
    )
    assert killed.code == -9
    again = bare_scene.ok("completion", "--install", "bash", "--json", **folders)
    assert _changes(again) == ["unchanged", "written"]


def test_a_relative_folder_in_the_environment_does_not_count(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    files = completion_files("bash", {"XDG_DATA_HOME": "somewhere"})
    assert all(path.is_relative_to(tmp_path / ".local/share") for path in files)
    named = completion_files("bash", {"BASH_COMPLETION_USER_DIR": "/mine"})
    assert list(named) == [Path("/mine/completions/crew"), Path("/mine/completions/git-crew")]


@pytest.mark.parametrize("shell", CHECKERS)
def test_a_real_shell_reads_the_files_without_complaint(bare_scene, folders, tmp_path, shell):
    bare_scene.ok("completion", "--install", shell, **folders)
    for name in NAMES[shell]:
        argv = [shell, "-n", tmp_path / name]
        read = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert (read.returncode, read.stderr) == (0, "")


COMPLETE = """
. "$1/crew"; . "$1/git-crew"
COMP_WORDS=(crew show ""); COMP_CWORD=2; _crew_completion crew; echo "${COMPREPLY[*]}"; COMPREPLY=()
COMP_WORDS=(git -C . crew show 2); COMP_CWORD=5 __git_cmd_idx=3; _git_crew; echo "${COMPREPLY[*]}"
complete -p crew git-crew
"""


def test_bash_completes_tasks_after_crew_and_after_git_crew(bare_scene, folders, tmp_path):
    """`_git_crew` is called by bash's own completion of git, which counts words from `git`."""
    bare_scene.ok("init")
    for title in ("one", "two"):
        bare_scene.ok("new", "--title", title)
    bare_scene.ok("completion", "--install", "bash", **folders)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("crew", "git-crew"):
        (programs / name).symlink_to(CREW)
    done = subprocess.run(
        ["bash", "--norc", "-c", COMPLETE, "bash", (tmp_path / NAMES["bash"][0]).parent],
        cwd=bare_scene.root,
        env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "1 2",
        "2 ",
        "complete -o nosort -F _crew_completion crew",
        "complete -o nosort -F _git_crew_completion git-crew",
    ]
