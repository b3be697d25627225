"""A task's branch is made with its mark, and nobody else's branch is ever taken for crew's."""

from concurrent.futures import ThreadPoolExecutor

from crew.domain.kernel.errors import Conflict
from crew.domain.kernel.names import made_ref
from crew.git.branches import claim_branch
from crew.git.repository import commit_of, ref_tip
from refusals import raises_code


def claim(repo, branch="crew-7", base="main"):
    return claim_branch(repo, branch, base=commit_of(repo, base))


def test_a_claimed_branch_is_at_its_base_and_marked(repo, person):
    assert claim(repo)
    assert commit_of(repo, "crew-7") == commit_of(repo, made_ref("crew-7")) == head(person)
    assert person.git("reflog", "crew-7").endswith("crew")


def head(person):
    return person.git("rev-parse", "HEAD")


def test_a_claim_that_is_repeated_leaves_the_branch_where_it_is(repo, person):
    claim(repo)
    first = head(person)
    person.commit({"x": "x"})
    assert not claim(repo)
    assert commit_of(repo, "crew-7") == first


def test_a_mark_without_its_branch_is_a_claim_that_was_killed(repo, person):
    person.git("update-ref", made_ref("crew-7"), "HEAD")
    assert not claim(repo)
    assert commit_of(repo, "crew-7") is None


def test_a_branch_that_crew_did_not_make_is_refused_and_left_unmarked(repo, person):
    person.git("branch", "crew-7")
    for _ in range(2):
        with raises_code(Conflict, "branch_not_ours"):
            claim(repo)
    assert commit_of(repo, made_ref("crew-7")) is None


def test_branches_below_the_name_are_refused_and_nothing_is_marked(repo, person):
    person.git("branch", "crew-7/mine")
    with raises_code(Conflict, "branch_in_the_way", "crew-7"):
        claim(repo)
    assert commit_of(repo, made_ref("crew-7")) is None


def test_one_of_many_claims_is_the_first(repo):
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda _: claim(repo), range(8))) == [False] * 7 + [True]


def test_the_tip_of_a_ref_is_found_wherever_git_keeps_it(repo, person):
    first = head(person)
    assert ref_tip(repo, "refs/heads/main") == first
    person.git("pack-refs", "--all", "--prune")
    assert not (repo.common_dir / "refs" / "heads" / "main").exists()
    assert ref_tip(repo, "refs/heads/main") == first
    second = person.commit({"x": "x"})
    assert ref_tip(repo, "refs/heads/main") == second
    person.git("symbolic-ref", "refs/heads/same", "refs/heads/main")
    assert ref_tip(repo, "refs/heads/same") == second
    assert ref_tip(repo, "refs/heads/none") is None
    person.git("branch", "folder/branch")
    assert ref_tip(repo, "refs/heads/folder") is None
