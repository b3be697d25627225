"""Small things that the store keeps."""

import pytest

from crew.domain.kernel.errors import TryLater
from crew.store.kept_values import (
    all_doing,
    find_index,
    first_setting,
    keep_doing,
    keep_index,
    keep_setting,
    setting,
)


def test_a_setting_is_what_was_kept_last(db):
    assert setting(db, "token") is None
    keep_setting(db, "token", "one")
    keep_setting(db, "token", "two")
    assert setting(db, "token") == "two"
    assert setting(db, "other") is None


def test_of_several_who_set_it_first_one_counts_for_all(connect):
    first, second = connect(), connect()
    assert first_setting(first, "id", "ours") == "ours"
    assert first_setting(second, "id", "theirs") == "ours"
    assert setting(second, "id") == "ours"


def test_what_an_agent_does_now_replaces_what_it_did_before(db):
    assert all_doing(db) == {}
    keep_doing(db, "A", "reads", at=1.0)
    keep_doing(db, "B", "thinks", at=2.0)
    keep_doing(db, "A", "schreibt Ümläute", at=3.0)
    assert all_doing(db) == {"A": "schreibt Ümläute", "B": "thinks"}


def test_each_source_has_an_index_of_its_own(db):
    assert find_index(db, "files") is None
    keep_index(db, "files", {"1": ["größe", 3, None]})
    keep_index(db, "tk", [])
    keep_index(db, "files", {"2": {"title": "ü"}})
    assert find_index(db, "files") == {"2": {"title": "ü"}}
    assert find_index(db, "tk") == []


def test_an_index_is_not_worth_waiting_for_and_later_writes_wait_again(connect):
    holding, db = connect(), connect(wait_s=3600.0)
    holding.execute("BEGIN IMMEDIATE")
    with pytest.raises(TryLater):
        keep_index(db, "files", [])
    holding.execute("ROLLBACK")
    assert db.execute("PRAGMA busy_timeout").fetchone() == (3_600_000,)


@pytest.mark.parametrize("damage", [b"\xff[1]", b'{"1": ['])
def test_a_damaged_index_counts_as_none_and_a_damaged_activity_is_shown(db, damage):
    keep_index(db, "files", {"1": ["title"]})
    keep_doing(db, "A", "reading", at=1.0)
    db.execute("UPDATE task_index SET value = CAST(? AS TEXT)", (damage,))
    db.execute("UPDATE doing SET words = CAST(? AS TEXT)", (b"read\xffng",))
    assert find_index(db, "files") is None
    assert all_doing(db) == {"A": "read\ufffdng"}
