"""Names that crew makes and takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.names import (
    agent_name,
    branch_name,
    checkpoint_ref,
    is_task_id,
    landed_ref,
    made_ref,
    next_agent_names,
    task_id,
    task_of_branch,
)
from domain.scenes import patient

HOSTILE = ["", "-rf", "a b", "a/b", "..", "a.lock", "$(id)", "a\n", "é", "x" * 65, "#", "crew-"]


@pytest.mark.parametrize("text", ["12", "#12", "crew-12"])
def test_a_person_may_write_an_id_in_three_ways(text):
    assert task_id(text) == "12"


@pytest.mark.parametrize("text", ["1", "c-abc1", "a_b", "x" * 64])
def test_an_id_of_plain_letters_is_taken_as_it_is(text):
    assert task_id(text) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_an_id_that_could_mean_something_to_a_shell_or_to_git_is_refused(text):
    with pytest.raises(UsageError) as caught:
        task_id(text)
    assert "12" in caught.value.hint
    assert not is_task_id(text) or text == "crew-"


@pytest.mark.parametrize("text", ["A", "ann", "A1", "code-reviewer_2", "x" * 32])
def test_an_agent_may_have_a_plain_name(text):
    assert agent_name(text) == text


@pytest.mark.parametrize("text", ["", "1", "-A", "A B", "A/B", "A;B", "é", "A\n", "x" * 33])
def test_a_name_that_is_not_plain_is_refused(text):
    with pytest.raises(UsageError) as caught:
        agent_name(text)
    assert "starts with a letter" in caught.value.hint


def test_new_agents_are_called_after_the_alphabet_and_then_after_it_again():
    names = next_agent_names(frozenset(), 28)
    assert names[:3] == ("A", "B", "C")
    assert names[25:] == ("Z", "A1", "B1")


def test_new_agents_take_the_first_names_that_nobody_has():
    assert next_agent_names(frozenset({"A", "C", "ann"}), 3) == ("B", "D", "E")
    assert next_agent_names(frozenset(), 0) == ()


@patient
@given(st.sets(st.from_regex(r"[A-C][1-2]?", fullmatch=True)), st.integers(0, 80))
def test_new_names_are_free_different_and_valid(taken, count):
    names = next_agent_names(frozenset(taken), count)
    assert len(set(names)) == len(names) == count
    assert not set(names) & taken
    assert all(agent_name(name) for name in names)


def test_branches_are_named_as_in_the_seed():
    assert branch_name("1") == "crew-1"
    assert branch_name("1", 123) == "crew-1-gh-123"


@patient
@given(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_]{0,20}", fullmatch=True),
    st.none() | st.integers(1, 99_999),
)
def test_a_branch_tells_its_task(task, issue):
    assert task_of_branch(branch_name(task, issue)) == task


@pytest.mark.parametrize("branch", ["main", "crew-", "crew-$(id)", "crew-1/x", "xcrew-1"])
def test_a_branch_that_is_not_ours_has_no_task(branch):
    assert task_of_branch(branch) is None


def test_refs_stand_under_crew():
    assert landed_ref("release/1.0") == "refs/crew/landed/release/1.0"
    assert checkpoint_ref("12", 3) == "refs/crew/checkpoints/12/3"


def test_the_mark_of_a_branch_that_crew_made_is_hidden_from_people():
    assert made_ref("crew-12") == "refs/crew/branches/crew-12"
