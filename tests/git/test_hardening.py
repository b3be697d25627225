"""The settings under which crew's git runs, read from a listing without starting git."""

import os
from pathlib import Path

import pytest

from crew.git import hardening
from crew.git.hardening import (
    FIXED,
    environment,
    git_dir_of,
    guarded,
    linked_git_dir,
    parse_listing,
    shares_config_with,
    stamp_of,
    standard_files,
)

HARMLESS = {"", "true", "false", "cat", "ssh", os.devnull}
PROGRAMS = """
    core.hooksPath core.fsmonitor core.sshCommand core.gitProxy core.askPass core.editor core.pager
    core.alternateRefsCommand credential.helper diff.external gpg.program
"""


@pytest.fixture
def git_dir(tmp_path) -> Path:
    folder = tmp_path / "repo" / ".git"
    (folder / "objects").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def listing(*entries):
    """As `git config` lists it: a scope, an origin, and a key with its value."""
    return b"".join(
        f"global\0{origin}\0{key}\n{value}\0".encode() for origin, key, value in entries
    )


def parsed(git_dir, *entries):
    return parse_listing(listing(*entries), cwd=git_dir.parent, git_dir=git_dir)


def test_every_program_that_a_setting_could_start_is_a_harmless_one():
    assert {FIXED[key] for key in PROGRAMS.split()} <= HARMLESS
    assert FIXED["protocol.ext.allow"] == "never"
    switches = ("gpgSign", "Signature", "auto", "recurse", "ui", "safecrlf", "splitIndex")
    assert {FIXED[key] for key in FIXED if key.endswith(switches)} == {"false", "0"}


@pytest.mark.parametrize("verb", ["diff", "log", "show"])
def test_drivers_of_diffs_are_switched_off(verb):
    assert guarded((verb, "-p")) == (verb, "--no-ext-diff", "--no-textconv", "-p")
    assert guarded(("status", verb)) == ("status", verb)
    assert guarded(()) == ()


def test_a_person_is_handed_on_from_anywhere_and_other_settings_from_the_repository(git_dir):
    own, home = "file:.git/config", "file:/home/ann/.gitconfig"
    read = parsed(
        git_dir,
        (home, "user.name", "Ann"),
        (home, "core.eol", "crlf"),
        (own, "core.autocrlf", "input"),
        (own, "alias.st", "status"),
        (own, "remote.origin.url", "https://token@example.org"),
        (own, "credential.helper", "store"),
        ("command line:", "core.symlinks", "true"),
        ("standard input:", "user.email", "ann@example.org"),
    )
    assert read.handed_on == {
        "user.name": "Ann",
        "user.email": "ann@example.org",
        "core.autocrlf": "input",
        "alias.st": "status",
    }


def test_the_settings_of_a_worktree_are_handed_on_too(git_dir):
    read = parsed(git_dir, ("file:.git/config.worktree", "core.sparsecheckout", "true"))
    assert read.handed_on == {"core.sparsecheckout": "true"}
    alone = parse_listing(listing(("file:/x", "core.eol", "lf")), cwd=git_dir.parent, git_dir=None)
    assert alone.handed_on == {}


def test_each_file_that_sets_or_includes_something_is_known(git_dir, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    read = parsed(
        git_dir,
        ("file:/home/ann/.gitconfig", "include.path", "more"),
        ("file:/srv/shared", "include.path", "~/own"),
        ("file:.git/config", "core.eol", "lf"),
        ("blob:abc", "include.path", "unseen"),
    )
    assert read.files == (
        *standard_files(git_dir),
        *(Path("/home/ann/more"), Path("/srv/shared"), Path("/home/ann/own")),
    )
    assert not read.is_conditional
    assert git_dir / "HEAD" not in read.files


def test_a_condition_makes_the_settings_depend_on_the_branch(git_dir):
    read = parsed(git_dir, ("file:/x/c", "includeif.onbranch:main.path", "inner"))
    assert read.is_conditional
    assert {Path("/x/inner"), git_dir / "HEAD"} <= set(read.files)


def test_git_reads_its_standard_files(git_dir, monkeypatch):
    own = (git_dir / "config", git_dir / "config.worktree")
    monkeypatch.setenv("HOME", "/home/ann")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    system, home = Path("/etc/gitconfig"), Path("/home/ann/.gitconfig")
    assert standard_files(git_dir) == (system, Path("/home/ann/.config/git/config"), home, *own)
    monkeypatch.setenv("XDG_CONFIG_HOME", "/xdg")
    assert standard_files(None) == (system, Path("/xdg/git/config"), home)


def test_every_driver_is_silenced(git_dir):
    read = parsed(
        git_dir,
        ("file:x", "filter.a.b.clean", "evil"),
        ("file:x", "diff.d.command", "evil"),
        ("file:x", "merge.m.driver", "evil"),
        ("file:x", "lfs.extension.e.clean", "evil"),
        ("file:x", "merge.renames", "false"),
        ("file:x", "color.diff.meta", "red"),
    )
    assert read.filters == {"a.b"}
    assert read.silenced == {
        "filter.a.b.clean": "",
        "filter.a.b.smudge": "",
        "filter.a.b.process": "",
        "filter.a.b.required": "false",
        "diff.d.textconv": "cat",
        "diff.d.command": "",
        "merge.m.driver": hardening.MERGE_AS_TEXT,
        "lfs.extension.e.clean": "",
    }


@pytest.mark.parametrize(
    ("clean", "installed", "is_lfs"),
    [
        ("git-lfs clean -- %f", "/usr/bin/git-lfs", True),
        ("git-lfs clean -- %f", None, False),
        ("evil", "/usr/bin/git-lfs", False),
        (None, "/usr/bin/git-lfs", False),
    ],
)
def test_large_files_need_the_known_commands_and_the_program(
    git_dir, monkeypatch, clean, installed, is_lfs
):
    monkeypatch.setattr("shutil.which", lambda _name: installed)
    entries = [("file:x", "filter.lfs.clean", clean)] if clean else []
    read = parsed(git_dir, *entries, ("file:x", "filter.lfs.smudge.x", "y"))
    assert read.lfs is is_lfs


@pytest.mark.parametrize(
    ("entries", "wanted"),
    [
        ({"filter.lfs.smudge": "git-lfs smudge -- %f"}, "all"),
        ({"filter.lfs.smudge": "git-lfs smudge --skip -- %f"}, "none"),
        ({"filter.lfs.process": "git-lfs filter-process --skip"}, "none"),
        ({"lfs.fetchexclude": "media"}, "some"),
        ({"lfs.fetchinclude": "src"}, "some"),
        ({"lfs.fetchexclude": ""}, "all"),
    ],
)
def test_a_person_may_want_all_contents_of_large_files_or_not(git_dir, entries, wanted):
    read = parsed(git_dir, *(("file:x", key, value) for key, value in entries.items()))
    assert read.lfs_wanted == wanted


@pytest.mark.parametrize(
    ("entries", "promising"),
    [
        ({"remote.origin.promisor": "true"}, ("origin",)),
        ({"remote.a.b.promisor": "1", "remote.c.promisor": ""}, ("a.b", "c")),
        ({"extensions.partialclone": "far", "remote.origin.promisor": "true"}, ("far", "origin")),
        ({"remote.origin.promisor": "False"}, ()),
        ({"remote.origin.url": "true"}, ()),
    ],
)
def test_a_remote_may_promise_objects(git_dir, entries, promising):
    read = parsed(git_dir, *(("file:x", key, value) for key, value in entries.items()))
    assert read.promising == promising
    assert parsed(git_dir, ("file:x", "crew.defaultbranch", " dev ")).default_branch == "dev"
    assert parsed(git_dir).default_branch == ""


def test_the_environment_has_crews_settings_and_no_other_ones(monkeypatch):
    for name in ("GIT_DIR", "GIT_EXTERNAL_DIFF", "SSH_ASKPASS", "LANGUAGE"):
        monkeypatch.setenv(name, "evil")
    made = environment({"a.b": "1", "c.d": "2"}, {"GIT_INDEX_FILE": "x"})
    assert "evil" not in made.values()
    assert {name: value for name, value in made.items() if name.startswith(("GIT_", "LC_"))} == {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "a.b",
        "GIT_CONFIG_VALUE_0": "1",
        "GIT_CONFIG_KEY_1": "c.d",
        "GIT_CONFIG_VALUE_1": "2",
        "GIT_INDEX_FILE": "x",
    }


def test_the_git_dir_is_found_from_any_folder(git_dir, tmp_path):
    deep = git_dir.parent / "a" / "b"
    deep.mkdir(parents=True)
    assert git_dir_of(deep) == git_dir_of(git_dir.parent) == git_dir
    assert git_dir_of(git_dir / "objects") == git_dir
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / ".git").write_text("gitdir: ../repo/.git/worktrees/1\n")
    assert git_dir_of(linked) == linked / "../repo/.git/worktrees/1"
    (linked / ".git").write_text("nonsense\n")
    assert linked_git_dir(linked / ".git") is None
    admin = git_dir / "worktrees" / "1"
    admin.mkdir(parents=True)
    for name, text in (("HEAD", "x"), ("commondir", "../..\n")):
        (admin / name).write_text(text)
    assert git_dir_of(admin) == admin
    assert shares_config_with(admin) == git_dir
    (admin / "config.worktree").touch()
    assert shares_config_with(admin) == admin
    assert shares_config_with(None) is None


def test_a_stamp_changes_with_its_file(tmp_path):
    file = tmp_path / "config"
    missing = stamp_of([file])
    file.write_text("a")
    first = stamp_of([file])
    file.write_text("bb")
    assert missing == ((),)
    assert len({missing, first, stamp_of([file])}) == 3
