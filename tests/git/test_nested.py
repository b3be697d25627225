"""A repository inside a worktree is a submodule that others can clone, or it is a stray."""

import shutil

import pytest

from crew.domain.runs.complaints import ways_out
from crew.git.checkpoints.nested_repositories import strays
from crew.git.worktrees.worktree_admin import git_dir_for
from crew.git.worktrees.worktrees import ensure_worktree, state_of
from git.people import Person


@pytest.fixture
def agent(repo, tmp_path, kind) -> Person:
    tree = tmp_path / "tree 7"
    ensure_worktree(repo, tree, branch="crew-7", base="main", kind=kind)
    return Person(tree)


def scaffolded(agent, path="my app") -> Person:
    inner = Person(agent.path / path)
    inner.path.mkdir(parents=True)
    inner.git("init", "-q")
    inner.commit({"main.py": "print(1)\n"})
    return inner


def found(repo, agent, landed="main"):
    git_dir = git_dir_for(repo, agent.path)
    state = state_of(repo, agent.path)
    return strays(repo, agent.path, state, git_dir=git_dir, landed=landed)


def committed(agent, _inner):
    agent.commit(message="a link")


def gone(agent, inner):
    agent.commit(message="a link")
    shutil.rmtree(inner.path)
    inner.path.mkdir()


def without_git_dir(agent, inner):
    agent.commit(message="a link")
    shutil.rmtree(inner.path / ".git")


def without_url(agent, _inner):
    agent.commit({".gitmodules": '[submodule "my app"]\n\tpath = my app\n'})


def pointing_at_itself(agent, _inner):
    agent.commit({".gitmodules": '[submodule "x"]\n\tpath = my app\n\turl = ./my app\n'})


def over_tracked_files(agent, inner):
    shutil.rmtree(inner.path / ".git")
    agent.commit(message="plain files")
    inner.git("init", "-q")
    inner.commit()


WAYS_IN = [
    lambda _agent, _inner: None,
    lambda agent, _inner: agent.git("add", "-A"),
    lambda agent, _inner: agent.commit({".gitignore": "my app/\n"}),
    *(committed, gone, without_git_dir, without_url, pointing_at_itself),
    over_tracked_files,
]
NAMES = ["untracked", "staged", "ignored", *(way.__name__ for way in WAYS_IN[3:])]


@pytest.mark.parametrize("way_in", WAYS_IN, ids=NAMES)
def test_a_repository_of_its_own_is_found_however_it_lies_there(repo, agent, way_in):
    way_in(agent, scaffolded(agent))
    assert found(repo, agent) == ("my app",)


@pytest.mark.parametrize("kind", ["own"])
def test_a_repository_inside_is_one_change_also_when_the_agent_staged_it(repo, agent):
    scaffolded(agent)
    agent.git("add", "-A")
    assert state_of(repo, agent.path).changed == ("my app/",)


@pytest.mark.parametrize(
    "url", ["https://example.org/app.git", "git@example.org:app.git", "../app.git", "/srv/app.git"]
)
def test_a_submodule_with_an_address_is_none(repo, agent, url):
    scaffolded(agent)
    agent.commit({".gitmodules": f'[submodule "app"]\n\tpath = my app\n\turl = {url}\n'})
    assert found(repo, agent) == ()


def test_what_landed_before_and_what_tools_cloned_is_nobodys_fault(repo, agent):
    scaffolded(agent)
    agent.commit({".gitignore": "build/\nnode_modules/\n"})
    agent.git("clone", "-q", str(repo.root), "build/deps/lib")
    scaffolded(agent, "node_modules/lib")
    assert found(repo, agent) == ("my app",)
    assert found(repo, agent, landed="crew-7") == ()


@pytest.mark.parametrize(
    "way_in", [WAYS_IN[0], WAYS_IN[1], committed, without_git_dir, over_tracked_files]
)
@pytest.mark.parametrize("number", [1, 3])
def test_the_commands_in_the_prompt_work_as_they_are(repo, agent, way_in, number):
    way_in(agent, scaffolded(agent))
    command = ways_out("my app").splitlines()[number].partition(":")[2]
    agent.git("-c", f"alias.x=!{command}", "x")
    agent.commit(message="mended")
    assert found(repo, agent) == ()
    assert state_of(repo, agent.path).changed == ()
    files = agent.git("ls-files").splitlines()
    assert ("my app/main.py" in files) == (number == 1)


def test_the_command_for_a_submodule_works_with_an_address(repo, agent, tmp_path):
    inner = scaffolded(agent)
    committed(agent, inner)
    agent.git("clone", "-q", "--bare", str(inner.path), str(tmp_path / "app.git"))
    command = ways_out("my app").splitlines()[2].partition(":")[2]
    command = command.replace("URL", f"'{tmp_path}/app.git'")
    agent.git("-c", f"alias.x=!{command}", "x")
    agent.commit(message="mended")
    assert found(repo, agent) == ()
