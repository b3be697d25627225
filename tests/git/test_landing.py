"""Landed work reaches the target branch and changes nothing that is not committed."""


from crew.domain.names import landed_ref
from crew.git import sync
from crew.git.landing import deliver, integration_tip
from crew.git.merges import advance
from crew.git.repository import commit_of
from git.people import Person


def land(repo, person, files, *, remove=(), name="work"):
    """Another worktree commits on top of the integration ref and lands it."""
    tip = integration_tip(repo, "main")
    place = repo.common_dir.parent.parent / f"lander-{name}-{tip[:8]}"
    person.git("worktree", "add", "-q", "--detach", str(place), tip)
    other = Person(place)
    for gone in remove:
        (place / gone).unlink()
    commit = other.commit(files, name)
    person.git("worktree", "remove", "--force", str(place))
    advance(repo, landed_ref("main"), to=commit, expected=tip)
    return commit


def test_the_integration_ref_starts_at_the_target_and_stays_when_asked_again(repo, person):
    first = integration_tip(repo, "main")
    person.commit({"x": "x"})
    assert first == integration_tip(repo, "main") == commit_of(repo, "main~1")


def test_a_target_that_has_it_all_is_current(repo, person):
    integration_tip(repo, "main")
    assert deliver(repo, "main", hold_s=0).state == "current"
    person.commit({"x": "x"})
    assert deliver(repo, "main", hold_s=0).state == "current"


def test_a_branch_nobody_has_checked_out_is_moved(repo, person):
    person.git("switch", "-q", "-c", "other")
    commit = land(repo, person, {"new.txt": "new\n"})
    delivery = deliver(repo, "main", hold_s=0)
    assert (delivery.state, delivery.commit) == ("delivered", commit)
    assert commit_of(repo, "main") == commit
    assert not (person.path / "new.txt").exists()


def test_a_checkout_follows_and_is_clean(repo, person):
    commit = land(
        repo, person, {"new/deep.txt": "new\n", "a.txt": "changed\n"}, remove=["sub/c.txt"]
    )
    assert deliver(repo, "main", hold_s=0).state == "delivered"
    assert person.git("rev-parse", "HEAD") == commit
    assert person.git("status", "--porcelain") == ""
    assert (person.path / "new/deep.txt").read_text() == "new\n"
    assert not (person.path / "sub").exists()
    assert not (repo.common_dir / "index.lock").exists()
    assert not (repo.common_dir / sync.JOURNAL).exists()
    assert deliver(repo, "main", hold_s=0).state == "current"
