"""The person's git settings that cannot work in a sandbox: agents and gates commit all the same."""

from dataclasses import replace
from pathlib import Path

import pytest

from boundary.sandbox_scene import git
from crew.git.worktrees.worktrees import ensure_worktree
from crew.trusted_config import proposals

COMMITS = """
set -e
echo one >one && git add one && git commit -qm one
git commit -q --amend --no-edit
git tag -a -m v1 v1
git switch -q -c side && echo side >side && git add side && git commit -qm side
git switch -q - && echo two >two && git add two && git commit -qm two
git merge -q --no-ff --no-edit side
git rebase -q -i --no-ff HEAD~1
echo three >one && git stash -q && git stash pop -q && git checkout -q one
git log -1 --format='%an <%ae> %cn <%ce>'
git log --show-signature --format=%B >/dev/null
git diff HEAD~1 | cat >/dev/null
git status --short
"""
"""What an agent does with git, and the identity of the last commit."""

GATE = """
set -e
unset GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_CONFIG_COUNT
temporary=$(mktemp -d) && cd "$temporary" && git init -q . 2>&1
echo one >one && git add one && git commit -qm one && git tag -a -m v1 v1
git log -1 --format='%an <%ae> %cn <%ce>'
"""
"""A gate that commits in a temporary repository, as test suites do."""

IDENTITY = "[user]\n\tname = Ann\n\temail = ann@example.org\n"
ANN = "Ann <ann@example.org> Ann <ann@example.org>"

SETTINGS = {
    "commits are signed": "[commit]\n gpgsign\n[user]\n signingkey = 0xDEAD\n",
    "tags are signed": "[tag]\n gpgSign = true\n forceSignAnnotated = true\n",
    "ssh keys sign": (
        "[gpg]\n format = ssh\n[commit]\n gpgsign = true\n"
        '[gpg "ssh"]\n program = {missing}\n allowedSignersFile = {hidden}\n'
        "[user]\n signingkey = {hidden}\n"
    ),
    "another program signs": "[gpg]\n program = {missing}\n[commit]\n gpgsign = yes\n",
    "signatures are verified": "[merge]\n verifySignatures = true\n[log]\n showSignature = true\n",
    "an editor": "[core]\n editor = {missing} --wait\n[sequence]\n editor = {missing}\n",
    "a template of messages": "[commit]\n template = {hidden}\n",
    "hooks of the person": "[core]\n hooksPath = {hidden}\n",
    "a watcher of files": "[core]\n fsmonitor = {missing}\n",
    "a template of repositories": "[init]\n templateDir = {hidden}\n",
    "a pager and a diff": (
        "[core]\n pager = {missing}\n[pager]\n log = {missing}\n diff = {missing}\n"
        "[diff]\n external = {missing}\n"
    ),
    "included files": "[include]\n path = {included}\n",
    "other helpers": (
        "[credential]\n helper = {missing}\n[core]\n askPass = {missing}\n"
        ' sshCommand = {missing}\n[url "git@example.org:"]\n insteadOf = https://example.org/\n'
    ),
    "patterns elsewhere": "[core]\n excludesFile = {hidden}/no\n attributesFile = {hidden}/no\n",
}
INCLUDED = "[commit]\n gpgsign = true\n[user]\n name = Ann\n email = ann@example.org\n"


def with_task(place):
    """The place with a task's own repository, as crew lays it."""
    folder = place.workplace.worktrees / "4"
    ensure_worktree(place.workplace.repo, folder, branch="crew-4", base="main")
    return replace(place, folder=folder)


def filled(place, text):
    """A person's settings, which name programs and files that the sandbox does not have."""
    hidden = place.home / "private"
    hidden.mkdir()
    (hidden / "included").write_text(INCLUDED)
    (hidden / "file").write_text("hidden\n")
    names = {"missing": hidden / "program", "hidden": hidden / "file"}
    return text.format(**names, included=hidden / "included")


def assert_commits(place):
    agent = with_task(place)
    done = agent.step(COMMITS)
    assert (done.code, done.out.splitlines()[-1:]) == (0, [ANN]), done.out
    done = agent.gate(GATE)
    assert (done.code, done.out.splitlines()[-1:]) == (0, [ANN]), done.out


@pytest.mark.parametrize("name", SETTINGS)
def test_an_agent_and_a_gate_commit_whatever_a_person_sets(place, name):
    (place.home / ".gitconfig").write_text(filled(place, IDENTITY + SETTINGS[name]))
    assert_commits(place)


def set_in_xdg(place, text, monkeypatch):
    folder = place.home / ".settings"
    (folder / "git").mkdir(parents=True)
    (folder / "git" / "config").write_text(text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))


def set_in_xdg_by_a_link(place, text, monkeypatch):
    named = place.home / "dotfiles" / "settings"
    named.parent.mkdir()
    named.write_text(text)
    (place.home / ".config" / "git").mkdir(parents=True)
    (place.home / ".config" / "git" / "config").symlink_to(named)


def set_in_a_named_file(place, text, monkeypatch):
    named = place.home / "dotfiles" / "settings"
    named.parent.mkdir()
    named.write_text(text)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(named))


def set_by_a_link(place, text, monkeypatch):
    named = place.home / "dotfiles" / "settings"
    named.parent.mkdir()
    named.write_text(text)
    (place.home / ".gitconfig").symlink_to(named)


def set_for_the_system(place, text, monkeypatch):
    named = place.home.parent / "system settings"
    named.write_text(text)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(named))


def set_in_the_repository(place, text, monkeypatch):
    (place.home / ".gitconfig").write_text(IDENTITY)
    with (place.root / ".git" / "config").open("a") as file:
        file.write(text)


@pytest.mark.parametrize(
    "set_settings",
    [
        set_in_xdg,
        set_in_xdg_by_a_link,
        set_in_a_named_file,
        set_by_a_link,
        set_for_the_system,
        set_in_the_repository,
    ],
    ids=lambda one: one.__name__,
)
def test_an_agent_and_a_gate_commit_wherever_a_person_sets_it(place, set_settings, monkeypatch):
    text = filled(place, IDENTITY + "".join(SETTINGS.values()))
    (place.home / ".gitconfig").unlink()
    set_settings(place, text, monkeypatch)
    assert_commits(place)


def test_an_agent_in_a_linked_worktree_commits_unsigned(place):
    """Such a worktree has the settings of the person's repository."""
    place.configure('[sandbox]\n[worktree]\nkind = "linked"\n')
    with (place.root / ".git" / "config").open("a") as file:
        file.write(filled(place, "".join(SETTINGS.values())))
    folder = place.workplace.worktrees / "4"
    ensure_worktree(place.workplace.repo, folder, branch="crew-4", base="main", kind="linked")
    done = replace(place, folder=folder).step(COMMITS)
    assert (done.code, done.out.splitlines()[-1:]) == (0, [ANN]), done.out


def test_without_a_sandbox_an_agent_does_not_sign_either(described):
    described.mode = "off"
    described.configure("[sandbox]\n")
    text = filled(described, IDENTITY + SETTINGS["another program signs"] + SETTINGS["an editor"])
    (described.home / ".gitconfig").write_text(text)
    done = with_task(described).step(COMMITS)
    assert (done.code, done.out.splitlines()[-1:]) == (0, [ANN]), done.out


def test_patterns_of_the_person_hold_for_agents_and_gates(place):
    (place.home / "patterns").write_text("*.mine\n")
    (place.home / ".gitconfig").write_text(IDENTITY + "[core]\n\texcludesFile = ~/patterns\n")
    agent = with_task(place)
    shown = "touch a.mine b.txt; git status --short"
    assert agent.step(shown).out == agent.gate(shown).out == "?? b.txt\n"


def test_settings_of_included_files_hold_and_their_secrets_stay_hidden(place):
    included = place.home / "private settings"
    included.write_text(
        "[alias]\n\tlast = log -1\n[http]\n\textraHeader = Authorization: hush\n"
        "[github]\n\ttoken = hush\n"
        '[url "https://ann:hush@example.org/"]\n\tinsteadOf = https://example.org/\n'
    )
    text = f'{IDENTITY}[include]\n\tpath = "{included}"\n'
    (place.home / ".gitconfig").write_text(text)
    said = with_task(place).step("git config --list; cat ~/.gitconfig").out
    assert "alias.last=log -1" in said
    assert "hush" not in said


def test_a_file_of_the_checkout_opens_no_other_file(place):
    """The person's settings include it, and a commit may change it."""
    secret = place.home / ".netrc"
    (place.root / "shared").write_text(f"[core]\n\texcludesFile = {secret}\n[alias]\n\tx = y\n")
    text = f'{IDENTITY}[include]\n\tpath = "{place.root}/shared"\n'
    (place.home / ".gitconfig").write_text(text)
    said = with_task(place).step(f"git config --list; cat '{secret}'").out
    assert "alias.x" not in said
    assert "secret" not in said.replace(str(secret), "")


def test_who_allows_the_file_itself_shows_it(place):
    place.configure('[sandbox]\nallow_read = ["~/.gitconfig"]\n')
    (place.home / ".gitconfig").write_text(IDENTITY + "[github]\n\ttoken = shown\n")
    assert with_task(place).step("git config github.token").out == "shown\n"


def test_a_committed_wish_to_sign_waits_for_approval(described):
    (described.root / ".crew.toml").write_text("[merge]\nsign = true\n")
    git("add", ".crew.toml", at=described.root)
    git("commit", "-qm", "sign", at=described.root)
    described.workplace.__dict__.pop("settings", None)
    assert not described.workplace.settings.merge.sign
    (waiting,) = proposals(described.root)
    assert [change.key for change in waiting.changes] == [("merge", "sign")]


def test_the_page_about_safety_has_a_line_for_each_case():
    page = (Path(__file__).parents[2] / "docs" / "safety.md").read_text()
    table = page.partition("## Your git settings")[2].partition("\n## ")[0]
    lines = [line[2:].partition(" (")[0] for line in table.splitlines() if line.startswith("| ")]
    assert lines[1:] == list(SETTINGS)
