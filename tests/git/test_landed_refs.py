"""A damaged integration ref is named, and put back where the record has it."""

import os
import shlex
import signal
import subprocess
import sys

import pytest

from crew.domain.kernel.errors import Conflict
from crew.git.branches import claim_branch
from crew.git.delivery.landed_refs import (
    damaged_targets,
    integration_tip,
    landed_tips,
    restore_landed,
)
from crew.git.git_command import GitFailed
from crew.git.refs import Moved

MISSING = "1" * 40
RESTORE = """
import sys
from pathlib import Path
from crew.git.delivery.landed_refs import restore_landed
from crew.git.repository import find_repository
restore_landed(find_repository(Path(sys.argv[1])), {"main": sys.argv[2]})
"""


@pytest.fixture(params=["", "garbage", MISSING])
def damaged(repo, request):
    tip = integration_tip(repo, "main")
    (repo.common_dir / "refs" / "crew" / "landed" / "main").write_text(request.param)
    return tip


def test_it_is_named_with_its_repair_and_counts_as_no_landing(repo, damaged):
    with pytest.raises(Conflict) as refused:
        integration_tip(repo, "main")
    assert refused.value.code == "landed_ref_damaged"
    assert (damaged_targets(repo), landed_tips(repo)) == (["main"], {})


def test_it_comes_back_from_the_record_or_from_the_target(repo, person, damaged):
    later = person.commit({"a.txt": "later"})
    assert restore_landed(repo, {"main": damaged}) == ["main"]
    assert landed_tips(repo) == {"main": damaged}
    (repo.common_dir / "refs" / "crew" / "landed" / "main").write_text("")
    restore_landed(repo, {"main": MISSING})
    assert landed_tips(repo) == {"main": later}
    assert restore_landed(repo, {}) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_restore_that_was_killed_is_repeated(repo, person, damaged, when):
    env = {**os.environ, "CREW_CRASH_AT": f"git.restore_landed.{when}"}
    args = [sys.executable, "-c", RESTORE, str(person.path), damaged]
    assert subprocess.run(args, env=env, check=False).returncode == -signal.SIGKILL
    restore_landed(repo, {"main": damaged})
    assert integration_tip(repo, "main") == damaged


def test_without_the_branch_there_is_nothing_to_land_on(repo):
    with pytest.raises(Conflict, match="the branch gone to land on does not exist") as refused:
        integration_tip(repo, "gone")
    assert refused.value.hint == "create it: git branch gone"


@pytest.mark.parametrize("at", ["2" * 40, None])
def test_the_ref_that_another_process_made_first_counts(repo, person, monkeypatch, at):
    def too_late(_repo, ref, *, to, expected):
        assert (to, expected) == (person.git("rev-parse", "main"), None)
        raise Moved(ref, at=at, expected=expected)

    monkeypatch.setattr("crew.git.delivery.landed_refs.advance", too_late)
    assert integration_tip(repo, "main") == (at or person.git("rev-parse", "main"))


@pytest.fixture(params=[("feature", "feature/login"), ("feature/login", "feature")])
def blocked(repo, person, request):
    """A target whose branch was deleted after a landing, and a branch that its ref blocks."""
    old, new = request.param
    person.git("switch", "-q", "-c", old)
    landed = person.commit({"a.txt": "landed"})
    assert integration_tip(repo, old) == landed
    person.git("switch", "-q", "main")
    person.git("branch", "-q", "-D", old)
    person.git("branch", new)
    return old, new, landed


@pytest.mark.parametrize("holder", ["branch", "tag"])
def test_a_landing_that_the_person_has_elsewhere_blocks_no_other_branch(
    repo, person, blocked, holder
):
    old, new, landed = blocked
    person.git(holder, "kept", landed)
    assert integration_tip(repo, new) == person.git("rev-parse", "main")
    assert old not in landed_tips(repo)


def test_a_landing_that_only_crew_has_is_kept_and_its_remedy_works(repo, person, blocked):
    old, new, landed = blocked
    assert claim_branch(repo, "crew-7", base=landed)  # crew will delete that one
    with pytest.raises(Conflict, match=f"no branch has what landed for {old}") as refused:
        integration_tip(repo, new)
    assert refused.value.code == "landed_ref_in_the_way"
    assert landed_tips(repo) == {old: landed}
    words = shlex.split(refused.value.hint.partition(": git ")[2])
    person.git(*words)
    assert integration_tip(repo, new) == person.git("rev-parse", "main")
    assert person.git("rev-parse", words[1]) == landed


def test_a_ref_that_nothing_blocks_fails_with_the_words_of_git(repo, person):
    lock = repo.common_dir / "refs" / "crew" / "landed" / "main.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    with pytest.raises(GitFailed, match="lock"):
        integration_tip(repo, "main")
