"""What a member of a channel is told with its turn."""

from crew.domain.rows.channel import Author, Post
from crew.runner.outside.member_steps import LONGEST_CONVERSATION, conversation


def _posts(*texts):
    return tuple(
        Post(id=f"room/{n}", channel="room", sequence=n, sender="pm", text=text, at=1.0)
        for n, text in enumerate(texts, start=1)
    )


def test_each_word_has_its_number_and_who_said_it():
    person = Post(
        id="room/2",
        channel="room",
        sequence=2,
        sender="ann",
        text="and?",
        at=1.0,
        author=Author.PERSON,
        to=("pm",),
        late=True,
    )
    told = conversation((*_posts("hello"), person))
    assert told == "#1 pm:\n> hello\n\n#2 ann (a person) to pm, late:\n> and?"
    assert conversation(()) == ""


def test_of_a_conversation_without_end_the_newest_is_told_and_where_the_rest_is():
    told = conversation(_posts(*(f"{n} " + "x" * 10_000 for n in range(1, 100_001, 1_000))))
    assert len(told) < LONGEST_CONVERSATION + 1_000
    assert told.startswith("(#1 to #81 are left out here; `crew channel tail room` shows them)")
    assert "\n\n#82 pm:\n> 81001 xxx" in told
    assert "#100 pm:\n> 99001 xxx" in told


def test_the_last_word_is_always_told():
    told = conversation(_posts("old", "x" * (LONGEST_CONVERSATION + 1)))
    assert told.startswith("(#1 to #1 are left out here")
    assert told.endswith("xxx")
