"""A token proves one attempt of one run while it lasts, and no answered request keeps one."""

import pytest

from crew.domain.kernel.errors import Conflict, NeedsLogin
from crew.domain.requests import Request, parsed
from crew.domain.rows.run import Run
from crew.domain.runs.speaking_run import Speaker, speaking_run
from crew.domain.world import with_rows
from crew.runner.requests.agent_door import DOOR_VERBS
from crew.runner.requests.tokens import Tokens
from crew.store.database import open_database
from crew.store.fact_log import record
from crew.store.replies import Reply
from crew.store.request_queue import add_request, drop_requests

RUN = Run(id="1.1", task="1", attempt=2, stepping=True)
OTHER = Run(id="2.1", task="2", attempt=1, stepping=True)


@pytest.fixture
def tokens(tmp_path):
    return Tokens(tmp_path)


def speaker_of(tokens, token, *, now=RUN, **claimed):
    """The run that a signal with this token is taken for."""
    request = tokens.checked(Request(verb="signal", args={"token": token, **claimed}))
    return speaking_run(with_rows([now, OTHER]), parsed(Speaker, request))


def test_a_token_speaks_for_its_own_run_whatever_the_request_claims(tokens):
    claimed = {"run": "2.1", "attempt": 1, "terminal": 1, "review": "x"}
    assert speaker_of(tokens, tokens.token(RUN), **claimed) == RUN


@pytest.mark.parametrize(
    "now",
    [
        Run(id="1.1", task="1", attempt=2, stepping=False),
        Run(id="1.1", task="1", attempt=3, stepping=True),
    ],
    ids=["the step has ended", "the next attempt"],
)
def test_a_token_ends_with_its_attempt(tokens, now):
    with pytest.raises(Conflict, match="has ended"):
        speaker_of(tokens, tokens.token(RUN), now=now)


@pytest.mark.parametrize("verb", sorted(DOOR_VERBS))
@pytest.mark.parametrize("task", ["1", "1.1/2", ""])
def test_the_token_of_a_gate_allows_no_request(tokens, verb, task):
    with pytest.raises(NeedsLogin):
        tokens.checked(Request(verb=verb, args={"token": tokens.gate_token(task)}))


def test_a_name_cannot_be_changed_without_the_secret(tokens, tmp_path):
    name, _, proof = tokens.token(RUN).rpartition("/")
    (tmp_path / "elsewhere").mkdir()
    forged = (
        f"2.1/1/{proof}",
        f"{name}/{'0' * 64}",
        Tokens(tmp_path / "elsewhere").token(RUN),
        "",
        "/",
        f"{name}/é",
    )
    for token in forged:
        with pytest.raises(NeedsLogin):
            speaker_of(tokens, token)


def test_an_answered_request_has_no_token_any_more(tmp_path):
    db = open_database(tmp_path / "crew.db")
    world = with_rows([])
    number = add_request(db, Request(verb="signal", args={"token": "t", "text": "x"}), at=1.0)
    record(db, world, (), reply=Reply(number=number, words={"reply": "ok"}))
    assert stored(db) == ['{"text":"x"}']
    db.execute('UPDATE requests SET args = \'{"token": "old"}\'')  # as an earlier crew left it
    drop_requests(db)
    assert stored(db) == ["{}"]
    db.close()


def stored(db) -> list[str]:
    return [args for (args,) in db.execute("SELECT args FROM requests").fetchall()]


def test_the_secret_is_for_its_owner_alone(tokens, tmp_path):
    tokens.token(RUN)
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "secret").stat().st_size == 32
