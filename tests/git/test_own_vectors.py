"""No setting, hook, filter or redirect in a task's own repository makes crew run a program."""

import os
import shutil
import subprocess

import pytest

from crew.domain.kernel.errors import CrewError
from crew.git.checkpoints.checkpoints import checkpoints, restore, take_checkpoint
from crew.git.checkpoints.nested_repositories import strays
from crew.git.merges.merges import merge
from crew.git.repository import commit_of
from crew.git.worktrees.nested_view import without_dirty_links
from crew.git.worktrees.stale_locks import clear_stale_locks, locks_in
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import (
    bound_to,
    ensure_detached,
    ensure_worktree,
    heal,
    remove_worktree,
    state_of,
)
from git.conftest import agents_git_dir
from git.people import Person

HOOKS = ("pre-commit", "post-checkout", "post-index-change", "reference-transaction", "post-merge")


@pytest.fixture
def agent(repo, tmp_path) -> Person:
    tree = tmp_path / "trees" / "7"
    ensure_worktree(repo, tree, branch="crew-7", base="main")
    return Person(tree)


@pytest.fixture
def program(marker) -> str:
    file = marker.parent / "program"
    file.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat 2>/dev/null < /dev/null\nexit 0\n")
    file.chmod(0o755)
    return str(file)


def setting(*pairs):
    def plant(agent, program, _git_dir):
        for key, value in pairs:
            agent.git("config", key, value.replace("PROGRAM", program))

    return plant


def included(agent, program, git_dir):
    (git_dir / "more").write_text(f"[core]\n\tfsmonitor = {program}\n")
    agent.git("config", "include.path", "more")


def hooks_path(agent, program, git_dir):
    write_hooks(git_dir / "mine", program)
    agent.git("config", "core.hooksPath", str(git_dir / "mine"))


def hooks(agent, program, git_dir):
    agent.git("config", "--unset", "core.hooksPath")
    write_hooks(git_dir / "hooks", program)


def write_hooks(folder, program):
    folder.mkdir(exist_ok=True)
    for name in HOOKS:
        shutil.copy(program, folder / name)


def filtered(agent, program, _git_dir):
    setting(("filter.x.clean", "PROGRAM"), ("filter.x.smudge", "PROGRAM"))(agent, program, None)
    agent.write(".gitattributes", "* filter=x\n")


def filtered_by_info(agent, program, git_dir):
    setting(("filter.x.process", "PROGRAM"), ("filter.x.clean", "PROGRAM"))(agent, program, None)
    (git_dir / "info" / "attributes").write_text("* filter=x\n")


def converted(agent, program, _git_dir):
    setting(("diff.x.textconv", "PROGRAM"), ("diff.x.command", "PROGRAM"))(agent, program, None)
    agent.write(".gitattributes", "* diff=x\n")


def merged(agent, program, _git_dir):
    setting(("merge.x.driver", "PROGRAM"), ("merge.default", "x"))(agent, program, None)
    agent.write(".gitattributes", "* merge=x\n")


def of_worktree(agent, program, _git_dir):
    agent.git("config", "extensions.worktreeConfig", "true")
    agent.git("config", "--worktree", "core.fsmonitor", program)


def evil_repository(agent, program):
    evil = Person(agent.path.parent / "evil")
    evil.path.mkdir()
    evil.git("init", "-q")
    evil.commit({"a.txt": "evil\n"})
    evil.git("config", "core.fsmonitor", program)
    return evil


def redirected(agent, program, _git_dir):
    evil = evil_repository(agent, program)
    (agent.path / ".git").write_text(f"gitdir: {evil.path}/.git\n")


def replaced(agent, program, _git_dir):
    evil = evil_repository(agent, program)
    (agent.path / ".git").unlink()
    shutil.move(evil.path / ".git", agent.path / ".git")


def common_dir(agent, program, git_dir):
    evil = evil_repository(agent, program)
    (git_dir / "commondir").write_text(f"{evil.path}/.git\n")


def promised(agent, program, git_dir):
    """A missing object that a remote promises, and a program to fetch it."""
    setting(
        ("extensions.partialClone", "evil"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.url", "ssh://nowhere.invalid/x"),
        ("core.sshCommand", "PROGRAM"),
        ("remote.evil.uploadpack", "PROGRAM"),
    )(agent, program, None)
    name = agent.git("rev-parse", "HEAD:a.txt")
    (git_dir / "objects" / name[:2] / name[2:]).unlink(missing_ok=True)


def nested(agent, program, _git_dir, *, is_committed=False):
    """A repository inside, with filters of its own; git itself starts another git for a link."""
    inner = Person(agent.path / "app")
    inner.path.mkdir()
    inner.git("init", "-q")
    inner.commit({"in.txt": "in\n", ".gitattributes": "* filter=y\n"})
    if is_committed:
        modules = '[submodule "app"]\n\tpath = app\n\turl = ../x\n\tignore = none\n'
        agent.write(".gitmodules", modules)
        agent.git("add", "app", ".gitmodules")
        agent.git("commit", "-q", "-m", "a link")
    for key in (
        "core.fsmonitor",
        "filter.y.clean",
        "filter.y.smudge",
        "uploadpack.packObjectsHook",
    ):
        inner.git("config", key, program)
    write_hooks(inner.path / ".git" / "hooks", program)
    inner.write("in.txt", "uo\n")


def linked_inside(agent, program, git_dir):
    nested(agent, program, git_dir, is_committed=True)


def nested_elsewhere(agent, program, _git_dir):
    evil = evil_repository(agent, program)
    agent.write("app/.git", f"gitdir: {evil.path}/.git\n")
    agent.write("app/a.txt", "a\n")


VECTORS = {
    "fsmonitor": setting(("core.fsmonitor", "PROGRAM")),
    "included fsmonitor": included,
    "hooks path": hooks_path,
    "hooks": hooks,
    "filter by .gitattributes": filtered,
    "filter by info/attributes": filtered_by_info,
    "config.worktree": of_worktree,
    "redirected .git": redirected,
    "replaced .git": replaced,
    "commondir": common_dir,
    "external diff": setting(("diff.external", "PROGRAM")),
    "gpg": setting(("gpg.program", "PROGRAM"), ("commit.gpgSign", "true")),
    "ssh": setting(("core.sshCommand", "PROGRAM"), ("core.gitProxy", "PROGRAM")),
    "remote ext": setting(("remote.origin.url", "ext::PROGRAM"), ("protocol.ext.allow", "always")),
    "merge driver": merged,
    "textconv": converted,
    "alias": setting(("alias.status", "!PROGRAM"), ("alias.x", "!PROGRAM")),
    "pager and editor": setting(("core.pager", "PROGRAM"), ("core.editor", "PROGRAM")),
    "core.worktree": setting(("core.worktree", "/"), ("core.fsmonitor", "PROGRAM")),
    "promisor": promised,
    "repository inside": nested,
    "link to a repository inside": linked_inside,
    "repository elsewhere": nested_elsewhere,
}
FIRES = {"fsmonitor", "included fsmonitor", "filter by .gitattributes", "redirected .git"}
FIRES |= {"filter by info/attributes", "replaced .git", "link to a repository inside"}


def attempt(action):
    """A refusal is as good as an answer: only the marker counts."""
    try:
        return action()
    except CrewError:
        return None


@pytest.mark.parametrize("name", VECTORS)
def test_nothing_runs_whatever_the_agent_planted(repo, agent, program, marker, name):
    tmp_path = marker.parent
    git_dir = agents_git_dir(repo, agent.path)
    head = agent.commit({"x.txt": "x\n", "a.txt": "changed\n"})
    VECTORS[name](agent, program, git_dir)
    agent.write("b.txt", "c\n")
    (agent.path / "b.txt").touch()
    marker.unlink(missing_ok=True)
    (git_dir / "index.lock").touch()

    use_all(repo, agent, tmp_path, head)
    assert not marker.exists()
    assert commit_of(repo, "crew-7") is not None


def use_all(repo, agent, tmp_path, head):
    """Everything that crew does with the worktree of a task."""
    path = agent.path
    state = attempt(lambda: state_of(repo, path))
    kept = attempt(lambda: take_checkpoint(repo, path, "7", label="x", at=1.0, with_ignored=True))
    assert kept is not None
    restore(repo, "7", None, tmp_path / "restored")
    if state is not None:
        crew_git = git_dir_for(repo, path)
        attempt(lambda: strays(repo, path, state, git_dir=crew_git, landed="main"))
    diff = ["git", "--no-pager", "diff", "main"]
    env = {**os.environ, **bound_to(repo, path), **without_dirty_links(path)}
    env["GIT_NO_LAZY_FETCH"] = "1"
    subprocess.run(diff, cwd=path, env=env, check=False, capture_output=True, timeout=60)
    attempt(lambda: merge(repo, onto="main", head=head, message="m", at=1.0))
    attempt(lambda: ensure_detached(repo, tmp_path / "gate", head))
    heal(repo, path)
    clear_stale_locks(repo, path, locks_in(repo, path, branch="crew-7"))
    attempt(lambda: ensure_worktree(repo, path, branch="crew-7", base="main"))
    attempt(lambda: state_of(repo, path))
    attempt(lambda: take_checkpoint(repo, path, "7", label="y", at=2.0, with_ignored=True))
    remove_worktree(repo, path)
    assert not path.exists()
    assert checkpoints(repo, "7")


@pytest.mark.parametrize("name", sorted(FIRES))
def test_plain_git_in_the_worktree_would_run_it(repo, agent, program, marker, name):
    """Otherwise the test above would prove nothing."""
    agent.commit({"x.txt": "x\n"})
    VECTORS[name](agent, program, agents_git_dir(repo, agent.path))
    agent.write("b.txt", "c\n")
    marker.unlink(missing_ok=True)
    agent.git("status", check=False)
    agent.git("add", "-A", check=False)
    assert marker.exists()


def test_a_repository_elsewhere_is_not_read_and_the_files_are_kept(repo, agent, person, tmp_path):
    """A git dir outside of the worktree could be a repository of the person."""
    secret = Person(tmp_path / "secret")
    secret.path.mkdir()
    secret.git("init", "-q")
    commit = secret.commit({"secret.txt": "secret\n"})
    agent.write("app/.git", f"gitdir: {secret.path}/.git\n")
    agent.write("app/own.txt", "own\n")
    kept = take_checkpoint(repo, agent.path, "7", label="x", at=1.0)
    assert kept.notes.nested == ()
    assert commit_of(repo, commit) is None
    restore(repo, "7", None, tmp_path / "restored")
    assert Person(tmp_path / "restored").tree()["app/own.txt"] == b"own\n"
    state = state_of(repo, agent.path)
    git_dir = git_dir_for(repo, agent.path)
    assert strays(repo, agent.path, state, git_dir=git_dir, landed="main") == ("app",)


@pytest.mark.parametrize("list_of", ["alternates", "forged"])
def test_objects_of_a_repository_inside_are_checked(repo, agent, tmp_path, list_of):
    inner = Person(agent.path / "app")
    inner.path.mkdir()
    inner.git("init", "-q")
    inner.commit({"in.txt": "old\n"})
    commit = inner.commit({"in.txt": "in\n"})
    objects = inner.path / ".git" / "objects"
    if list_of == "alternates":
        shutil.move(objects, tmp_path / "objects")
        (objects / "info").mkdir(parents=True)
        (objects / "info" / "alternates").write_text(f"{tmp_path}/objects\n")
    else:
        blob = inner.git("rev-parse", "HEAD~1:in.txt")
        other = inner.git("hash-object", "-w", "--stdin", input="other\n")
        target = objects / blob[:2] / blob[2:]
        target.unlink()
        shutil.copy(objects / other[:2] / other[2:], target)
    kept = take_checkpoint(repo, agent.path, "7", label="x", at=1.0)
    assert kept.notes.left_out == ("the history of app",)
    assert commit_of(repo, commit) is None
    restore(repo, "7", None, tmp_path / "restored")
    assert Person(tmp_path / "restored").tree()["app/in.txt"] == b"in\n"
    Person(repo.root).git("fsck", "--strict")
