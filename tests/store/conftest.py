"""Real databases in a folder of their own."""

import pytest

from crew.store.database import open_database


@pytest.fixture
def path(tmp_path):
    return tmp_path / "crew.db"


@pytest.fixture
def connect(path):
    """Opens the database as often as a test wants; nobody waits for a lock unless told to."""
    opened = []

    def connect(**settings):
        opened.append(open_database(path, **{"wait_s": 0.0, **settings}))
        return opened[-1]

    yield connect
    for db in opened:
        db.close()


@pytest.fixture
def db(connect):
    return connect()
