"""Values that a commit brought wait; the approved ones hold meanwhile."""

import pytest

from crew.config.layers.layers import read_layer
from crew.config.trust.approvals import NOTHING, Approval
from crew.config.trust.proposals import Tracking, approval_of, judged, with_key
from crew.config.trust.risky_keys import needs_approval
from crew.domain.kernel.errors import UsageError

OLD = b'[complete]\ncommand = "make test"\n[run]\nagents = 2\n'
NEW = b'[complete]\ncommand = "true"\n[run]\nagents = 5\n[notify]\ncommand = "evil"\n'
FILE = ".crew.toml"


def approved(content=OLD, *, is_committed=True):
    return approval_of(read_layer(FILE, content), NOTHING, is_committed=is_committed)


def judge(content, approval=NOTHING, *, is_tracked=True, is_settled=True):
    tracking = Tracking(is_tracked=is_tracked, is_settled=is_settled)
    return judged(FILE, content, approval, lambda: tracking)


def keys(found):
    return [(".".join(one.key), one.approved, one.proposed) for one in found.proposal.changes]


def test_a_file_that_git_does_not_track_is_the_persons_own():
    found = judge(NEW, approved(), is_tracked=False)
    assert found.proposal is None
    assert found.layer.values["complete"] == {"command": "true"}
    assert found.is_own


def test_while_git_changes_files_nothing_is_remembered():
    assert judge(NEW, is_tracked=False, is_settled=False).is_own is False


def test_an_approved_content_holds_and_git_is_not_asked():
    def never():
        raise AssertionError

    assert judged(FILE, OLD, approved(), never).layer.values["complete"]["command"] == "make test"


def test_of_a_tracked_file_the_approved_values_and_the_harmless_ones_hold():
    found = judge(NEW, approved())
    assert found.layer.values == {"complete": {"command": "make test"}, "run": {"agents": 5}}
    assert keys(found) == [
        ("complete.command", "make test", "true"),
        ("notify.command", None, "evil"),
    ]
    assert not found.is_own


def test_of_a_tracked_file_that_was_never_approved_only_the_harmless_values_hold():
    found = judge(NEW)
    assert found.layer.values == {"run": {"agents": 5}}
    assert [key for key, *_ in keys(found)] == ["complete.command", "notify.command"]


def test_a_value_that_a_commit_removes_holds_on():
    found = judge(b"[run]\nagents = 1\n", approved())
    assert found.layer.values == {"complete": {"command": "make test"}, "run": {"agents": 1}}
    assert keys(found) == [("complete.command", "make test", None)]


@pytest.mark.parametrize(
    ("is_committed", "is_tracked", "holds"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_a_file_that_is_gone_holds_on_if_a_commit_may_have_deleted_it(
    is_committed, is_tracked, holds
):
    found = judge(None, approved(is_committed=is_committed), is_tracked=is_tracked)
    assert (found.layer is not None) is holds
    assert (found.proposal is not None) is holds


def test_a_file_that_a_commit_made_invalid_stops_nothing():
    found = judge(b"[complete\n", approved())
    assert found.layer.values["complete"] == {"command": "make test"}
    assert FILE in found.proposal.problem


@pytest.mark.parametrize(("approval", "is_tracked"), [(NOTHING, True), (approved(), False)])
def test_a_mistake_of_a_person_is_an_error(approval, is_tracked):
    with pytest.raises(UsageError):
        judge(b"[complete\n", approval, is_tracked=is_tracked)


def test_a_key_that_a_person_sets_is_approved_and_the_rest_still_waits():
    approval = with_key(approved(), ("complete", "command"), "true")
    assert keys(judge(NEW, approval)) == [("notify.command", None, "evil")]


def test_a_key_that_implies_others_is_approved_with_them():
    content = b'[agents.sh]\ncommand_template = "sh x"\n'
    approval = with_key(Approval(), ("agents", "sh", "command_template"), "sh x")
    assert judge(content, approval).proposal is None


@pytest.mark.parametrize(
    "key",
    [
        *("agents.x.command", "agents.worker_default", "complete.command", "complete.timeout"),
        *("gate.keep", "notify.urls", "worktree.setup_command", "worktree.copy", "worktree.kind"),
        *("sandbox.mode", "diff.command", "review.mode", "tui.keybindings.a.command"),
        *("merge.target", "tui.keybindings.ctrl+r.override", "tui.keybindings"),
        *("tasks.source", "worktree.dir", "budget.day_usd", "something.new"),
    ],
)
def test_keys_that_run_or_loosen_something_need_approval(key):
    assert needs_approval(tuple(key.split(".")))


@pytest.mark.parametrize(
    "key", ["run.agents", "channel.timeout", "log.level", "merge.batch", "tui.sort"]
)
def test_harmless_keys_need_none(key):
    assert not needs_approval(tuple(key.split(".")))


def test_a_key_of_the_view_that_a_commit_brought_waits_and_its_choices_hold():
    content = b'[tui]\nsort = "newest"\n[tui.keybindings]\nx = { command = "evil" }\n'
    found = judge(content)
    assert found.layer.values == {"tui": {"sort": "newest"}}
    assert keys(found) == [("tui.keybindings.x.command", None, "evil")]
