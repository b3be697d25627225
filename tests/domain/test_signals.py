"""What an agent must say for a signal to count, and what it is told when it does not."""

import pytest

from crew.domain.kernel.errors import UsageError
from crew.domain.rows.step import SignalKind
from crew.domain.runs.signals import LONGEST, NEEDED, SPOKEN, Signal, read_signal

WHOLE = {
    SignalKind.COMPLETE: {"summary": "login fixed"},
    SignalKind.PARTIALLY_COMPLETE: {"progress": "parser done", "continuationPoint": "printer"},
    SignalKind.NEEDS_USER_INPUT: {"question": "Which database?", "context": "two are there"},
    SignalKind.NEEDS_ROLE_FOLLOWUP: {"targetRole": "pathseeker", "reason": "split the step"},
}


def refused(values):
    with pytest.raises(UsageError) as caught:
        read_signal(values)
    return caught.value


def spoken(name):
    return SPOKEN.get(name, name)


def test_the_signals_are_the_four_of_the_seed():
    names = {"complete", "partially-complete", "needs-user-input", "needs-role-followup"}
    assert {str(kind) for kind in SignalKind} == names == {str(kind) for kind in NEEDED}


@pytest.mark.parametrize("kind", SignalKind)
def test_a_signal_is_read_with_what_must_come_with_it(kind):
    read = read_signal({"signal": str(kind), **WHOLE[kind]})
    assert read.kind is kind
    assert all(getattr(read, name) == WHOLE[kind][spoken(name)] for name in NEEDED[kind])


def test_fields_are_known_by_the_seeds_name_and_by_ours():
    seeds = read_signal({"signal": "partially-complete", "progress": "a", "continuationPoint": "b"})
    ours = read_signal({"signal": "partially-complete", "progress": "a", "continue_at": "b"})
    assert (
        seeds == ours == Signal(kind=SignalKind.PARTIALLY_COMPLETE, progress="a", continue_at="b")
    )


@pytest.mark.parametrize(("kind", "name"), [(k, name) for k in SignalKind for name in NEEDED[k]])
@pytest.mark.parametrize("said", [None, "", " \n\t"])
def test_a_signal_without_what_it_needs_is_refused_and_says_what_is_missing(kind, name, said):
    error = refused({"signal": kind, **WHOLE[kind], spoken(name): said})
    assert f"the signal {kind} needs {spoken(name)}" in error.message
    assert spoken(name) in error.hint


def test_everything_that_is_missing_is_said_at_once():
    error = refused({"signal": "partially-complete"})
    assert "progress and continuationPoint" in error.message


@pytest.mark.parametrize(
    "named", [None, "", "done", "COMPLETE", "complete ", 1, True, ["complete"]]
)
def test_what_is_no_signal_is_refused_with_those_there_are(named):
    error = refused({"signal": named, "summary": "s"})
    assert all(kind in error.hint for kind in SignalKind)


def test_an_object_that_says_nothing_at_all_is_refused():
    assert "None is not a signal" in refused({}).message


@pytest.mark.parametrize("wrong", [1, 1.5, True, ["a"], {"a": 1}])
@pytest.mark.parametrize("name", ["summary", "context", "continuationPoint"])
def test_a_field_that_is_no_text_is_refused_by_its_name(name, wrong):
    error = refused({"signal": "complete", "summary": "s", name: wrong})
    assert error.message == f"{name} must be a text"


@pytest.mark.parametrize("wrong", ["true", 0, 1, None])
def test_resume_is_a_boolean(wrong):
    assert (
        "true or false" in refused({"signal": "complete", "summary": "s", "resume": wrong}).message
    )


@pytest.mark.parametrize("resume", [True, False])
def test_whether_the_asking_session_goes_on_is_kept(resume):
    values = {"signal": "needs-role-followup", "resume": resume, **WHOLE["needs-role-followup"]}
    assert read_signal(values).resume is resume


def test_a_text_is_cut_to_what_a_prompt_can_hold():
    read = read_signal({"signal": "complete", "summary": f"  {'x' * (LONGEST + 5)}"})
    assert read.summary == "x" * LONGEST


def test_what_nobody_knows_is_left_out():
    read = read_signal({"signal": "complete", "summary": "s", "stepId": "7", "mood": "good"})
    assert read == Signal(kind=SignalKind.COMPLETE, summary="s")
