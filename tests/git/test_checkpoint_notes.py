"""The notes of a checkpoint: what older crews wrote is read, and what is written is bounded."""

from crew.git.checkpoints.checkpoint_notes import MOST_LEFT_OUT, Notes, read_notes
from crew.git.checkpoints.nested_history import History

WRITTEN = """after step 1

Reset-away: "abc"
Nested: {"path": "app", "head": "def", "refs": {"refs/heads/old": "123"}}
Left-out: "big.bin (9.9 MB)"
No-head: true
"""


def test_notes_are_read_by_the_names_that_older_checkpoints_have():
    assert read_notes(WRITTEN) == Notes(
        reset_away=("abc",),
        nested=(History(path="app", head="def", refs={"refs/heads/old": "123"}),),
        left_out=("big.bin (9.9 MB)",),
        has_no_head=True,
    )
    assert read_notes(WRITTEN).message("after step 1") == WRITTEN


def test_a_message_without_notes_is_its_label():
    assert Notes().message("after step 1") == "after step 1\n"
    assert read_notes("after step 1\n\nSigned-off-by: Ann\nno colon\n") == Notes()


def test_what_is_left_out_is_named_up_to_a_limit():
    names = tuple(f"{number}.bin" for number in range(MOST_LEFT_OUT + 2))
    assert read_notes(Notes(left_out=names[:MOST_LEFT_OUT]).message("x")).left_out == names[:-2]
    assert read_notes(Notes(left_out=names).message("x")).left_out == (*names[:-2], "and 2 more")


def test_a_checkpoint_holds_each_commit_once():
    one, two, three = (letter * 40 for letter in "abc")
    nested = (
        History(path="app", head=two, refs={"refs/heads/old": three}),
        History(path="lib", head="refs/heads/main", refs={"refs/heads/main": three}),
    )
    assert Notes(reset_away=(one, two), nested=nested).commits == (one, two, three)
