"""The door to git: what it says, and that no file of a repository makes it run a program."""

import os
import shutil
from types import SimpleNamespace

import pytest

from crew.domain.kernel.errors import CrewError, TimedOut
from crew.git import git_command
from crew.git.checkpoints.checkpoints import restore, take_checkpoint
from crew.git.delivery.delivery import deliver
from crew.git.delivery.landed_refs import integration_tip
from crew.git.git_command import GitFailed, ask, first_output, git
from crew.git.merges.merges import MergeConflict, advance, merge
from crew.git.repository import find_repository
from crew.git.worktrees.worktrees import ensure_detached, ensure_worktree, state_of
from git.people import Person
from refusals import raises_code


def test_a_refusal_is_a_sentence_and_the_log_has_git_s_own_words(person, caplog):
    caplog.set_level("INFO")
    with pytest.raises(GitFailed) as refused:
        git(person.path, "rev-parse", "--verify", "no-such-thing")
    assert refused.value.message == "`git rev-parse` failed: Needed a single revision"
    assert "crew.log" in refused.value.hint
    assert "git rev-parse --verify no-such-thing ended with 128" in caplog.text
    assert "fatal: Needed a single revision" in caplog.text


def test_a_refusal_that_is_known_says_what_it_means(person):
    with pytest.raises(GitFailed) as refused:
        git(person.path, "merge-base", "--is-ancestor", "no-such-thing", "HEAD")
    assert "a branch or commit that crew needs is missing" in refused.value.message
    assert "git fsck" in refused.value.hint


def test_of_a_long_output_only_the_beginning_is_read(person):
    (person.path / "large").write_text("x" * 3_000_000)
    person.git("add", "large")
    person.git("commit", "-q", "-m", "large")
    args = ("show", "--format=", "HEAD")
    out, is_all = first_output(person.path, *args, settings={}, most=1_000)
    assert (len(out), is_all) == (1_000, False)
    out, is_all = first_output(person.path, *args, settings={}, most=9_000_000)
    assert (len(out) > 3_000_000, is_all) == (True, True)
    as_binary = {"core.bigFileThreshold": "1m"}
    out, is_all = first_output(person.path, *args, settings=as_binary, most=9_000_000)
    assert (b"Binary files" in out, is_all) == (True, True)
    with pytest.raises(GitFailed):
        first_output(person.path, "no-such-command", settings={}, most=1_000)


def test_asking_never_raises_for_an_exit_code(person):
    assert ask(person.path, "rev-parse", "--verify", "no-such-thing").code == 128


def test_an_inherited_git_dir_does_not_redirect_us(person, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    person.git("init", "-q", str(other))
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(other / ".git"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'user.name'='Eve'")
    assert git(person.path, "rev-parse", "--show-toplevel") == str(person.path)
    assert git(person.path, "config", "user.name") == "Ann"


def test_a_missing_git_and_a_missing_folder_are_told_apart(person, monkeypatch, tmp_path):
    with raises_code(GitFailed, "no_folder"):
        ask(tmp_path / "nowhere", "status")
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises_code(GitFailed, "not_installed"):
        ask(person.path, "status")


def test_a_command_that_hangs_is_ended(person, tmp_path, monkeypatch):
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    known = git_command._configured(person.path, {})
    monkeypatch.setenv("PATH", f"{slow.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(git_command, "_configured", lambda *_: known)
    with pytest.raises(TimedOut):
        ask(person.path, "status", timeout_s=0.2)


def test_a_busy_lock_is_waited_for(person, monkeypatch):
    lock = person.path / ".git" / "index.lock"
    lock.touch()
    waits = []

    def free_on_the_third(wait_s):
        waits.append(wait_s)
        if len(waits) == 3:
            lock.unlink()

    monkeypatch.setattr(git_command, "time", SimpleNamespace(sleep=free_on_the_third))
    assert ask(person.path, "add", ".").code == 0
    assert len(waits) == 3


def test_a_ref_that_is_elsewhere_is_not_tried_again(person, monkeypatch):
    monkeypatch.setattr(git_command, "time", SimpleNamespace(sleep=pytest.fail))
    head = person.git("rev-parse", "HEAD")
    other = person.commit({"x": "1"})
    answer = ask(person.path, "update-ref", "refs/heads/main", head, head)
    assert "but expected" in answer.err
    assert person.git("rev-parse", "HEAD") == other


def test_one_call_is_one_process_once_the_configuration_is_known(person, monkeypatch):
    ask(person.path, "status")
    started = []
    run = git_command.spawn_git.run
    monkeypatch.setattr(
        git_command.spawn_git, "run", lambda *a, **k: started.append(a[0]) or run(*a, **k)
    )
    ask(person.path, "status")
    assert len(started) == 1
    person.git("config", "filter.new.clean", "cat")
    started.clear()
    ask(person.path, "status")
    assert len(started) == 2


def test_worktrees_that_share_their_configuration_are_not_each_asked_for_it(
    person, repo, monkeypatch, tmp_path
):
    trees = [tmp_path / name for name in ("one", "two", "three")]
    for tree in trees:
        person.git("worktree", "add", "-q", "--detach", str(tree))
    ask(trees[0], "status")
    started = []
    run = git_command.spawn_git.run
    monkeypatch.setattr(
        git_command.spawn_git, "run", lambda *a, **k: started.append(a[0]) or run(*a, **k)
    )
    ask(trees[1], "status")
    ask(repo.common_dir, "rev-parse", "HEAD")
    assert len(started) == 2
    person.git("config", "extensions.worktreeConfig", "true")
    Person(trees[2]).git("config", "--worktree", "filter.mine.clean", "cat")
    assert git_command.configured_filters(trees[2]) == {"mine"}
    assert git_command.configured_filters(trees[1]) == set()


def test_what_is_included_for_one_worktree_only_counts_there(person, tmp_path):
    trees = [tmp_path / name for name in ("one", "two")]
    for tree in trees:
        person.git("worktree", "add", "-q", "--detach", str(tree))
    (tmp_path / "more").write_text('[filter "mine"]\n\tclean = cat\n')
    inside = f"includeIf.gitdir:{person.path}/.git/worktrees/two.path"
    person.git("config", inside, str(tmp_path / "more"))
    assert git_command.configured_filters(trees[0]) == set()
    assert git_command.configured_filters(trees[1]) == {"mine"}
    assert git_command.configured_filters(trees[0]) == set()


def test_a_file_included_later_is_noticed(person, marker, tmp_path):
    included = tmp_path / "later.config"
    person.git("config", "include.path", str(included))
    person.write(".gitattributes", "* filter=evil\n")
    ask(person.path, "status")
    included.write_text(f'[filter "evil"]\n\tclean = touch {marker}; cat\n')
    person.write("a.txt", "changed\n")
    ask(person.path, "add", "-A")
    assert not marker.exists()


def poison(person, marker):
    """Every setting that is known to make plain git run something."""
    fire = f"touch '{marker}'"
    hooks = person.path / ".git" / "hooks"
    mine = person.path / "myhooks"
    for folder in (hooks, mine):
        folder.mkdir(exist_ok=True)
        for name in (
            "pre-commit",
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "post-merge",
            "pre-merge-commit",
            "post-commit",
        ):
            (folder / name).write_text(f"#!/bin/sh\n{fire}\n")
            (folder / name).chmod(0o755)
    program = marker.parent / "program"
    program.write_text(f"#!/bin/sh\n{fire}\nexit 0\n")
    program.chmod(0o755)
    settings = {
        "core.hooksPath": str(mine),
        "core.fsmonitor": str(program),
        "diff.external": str(program),
        "gpg.program": str(program),
        "commit.gpgSign": "true",
        "core.sshCommand": str(program),
        "core.editor": str(program),
        "core.pager": str(program),
        "core.alternateRefsCommand": str(program),
        "filter.evil.clean": f"{fire}; cat",
        "filter.evil.smudge": f"{fire}; cat",
        "filter.evil.required": "true",
        "filter.a=b.clean": f"{fire}; cat",
        "filter.a=b.smudge": f"{fire}; cat",
        "filter.proc.process": str(program),
        "filter.lfs.clean": f"{fire}; cat",
        "filter.lfs.smudge": f"{fire}; cat",
        "diff.evil.textconv": str(program),
        "diff.evil.command": str(program),
        "merge.evil.driver": fire,
        "merge.default": "evil",
    }
    for key, value in settings.items():
        person.git("config", key, value)
    attributes = (
        "*.txt filter=evil diff=evil merge=evil\n*.one filter=a=b\n"
        "*.two filter=proc\n*.lfs filter=lfs\n"
    )
    (person.path / ".git" / "info" / "attributes").write_text(attributes)


def test_no_setting_hook_or_attribute_of_the_repository_is_ever_run(person, tmp_path, marker):
    person.commit({"x.one": "1\n", "x.two": "2\n", "x.lfs": "3\n"})
    poison(person, marker)
    for command_line in (["status"], ["diff", "HEAD~1"], ["update-ref", "refs/x", "HEAD"]):
        person.git(*command_line, check=False)
        assert marker.exists(), command_line
        marker.unlink()
    repo = find_repository(person.path)
    tree = tmp_path / "w 1"
    ensure_worktree(repo, tree, branch="crew-1", base="main")
    for name in ("a.txt", "x.one", "x.two", "x.lfs", "new.txt", "new.lfs"):
        (tree / name).write_text("changed by the agent\n")
    assert len(state_of(repo, tree).changed) == 6
    assert "+changed by the agent" in git(tree, "diff", "HEAD")
    kept = take_checkpoint(repo, tree, "1", label="step", at=1.0)
    restore(repo, "1", None, tmp_path / "restored")
    theirs = _commit_on(repo, tree)
    ours = git(repo.common_dir, "commit-tree", "-p", "main", f"{theirs}^{{tree}}", stdin=b"x")
    assert kept is not None
    merge(repo, onto="main", head=theirs, message="m", at=1.0)
    merge(repo, onto=ours, head=theirs, message="m", at=1.0)
    ensure_detached(repo, tmp_path / "gate", theirs)
    assert "+changed by the agent" in git(tree, "log", "-p", "-1")
    tip = integration_tip(repo, "main")
    advance(repo, "refs/crew/landed/main", to=theirs, expected=tip)
    assert deliver(repo, "main", hold_s=0).state == "waiting"
    assert not marker.exists()


def _commit_on(repo, tree):
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "agent")
    assert state_of(repo, tree).changed == ()
    return git(tree, "rev-parse", "HEAD")


def test_an_external_merge_driver_is_replaced_by_a_plain_text_merge(person, marker):
    person.commit({".gitattributes": "*.txt merge=ours-always\n"})
    person.git("config", "merge.ours-always.driver", f"touch '{marker}'; true")
    repo = find_repository(person.path)
    base = person.git("rev-parse", "HEAD")
    left = person.commit({"a.txt": "left\na2\na3\n"})
    person.git("switch", "-q", "--detach", base)
    right = person.commit({"a.txt": "right\na2\na3\n"})
    assert isinstance(merge(repo, onto=left, head=right, message="m", at=1), MergeConflict)
    far = person.commit({"a.txt": "a1\na2\na3\nfar\n", "b.txt": "bb\n"})
    person.git("switch", "-q", "--detach", base)
    near = person.commit({"b.txt": "near\n"})
    assert isinstance(merge(repo, onto=near, head=far, message="m", at=1), MergeConflict)
    assert not marker.exists()


def test_even_plain_git_lfs_is_never_run_by_crew(person, tmp_path, marker, monkeypatch):
    fake = tmp_path / "bin" / "git-lfs"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\ntouch '{marker}'\ncat\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    person.commit({".gitattributes": "*.bin filter=lfs\n", "x.bin": "text\n"})
    person.git("config", "filter.lfs.clean", "git-lfs clean -- %f")
    person.git("config", "filter.lfs.smudge", "git-lfs smudge -- %f")
    person.git("config", "filter.lfs.required", "true")
    (person.path / ".git" / "lfs" / "objects").mkdir(parents=True)
    repo = find_repository(person.path)
    tree = tmp_path / "w"
    ensure_worktree(repo, tree, branch="crew-1", base="main")
    (tree / "x.bin").write_text("changed\n")
    os.utime(tree / "x.bin", (1, 1))
    assert state_of(repo, tree).changed == ("x.bin",)
    (tree / "y.bin").write_text("big content\n")
    kept = take_checkpoint(repo, tree, "1", label="step", at=1)
    assert git(tree, "cat-file", "blob", f"{kept.commit}:y.bin") == "big content"
    assert not marker.exists()
    Person(tree).git("add", "x.bin")
    assert marker.exists()


def test_hints_fit_what_happened(person):
    shutil.rmtree(person.path / ".git")
    with pytest.raises(CrewError) as refused:
        git(person.path, "status")
    assert "git init" in refused.value.hint


def test_what_git_prints_in_no_known_letters_is_shown_all_the_same(repo):
    answer = ask(repo.common_dir, "show", "x\udcff")
    assert answer.code != 0
    assert "x\ufffd" in answer.err
