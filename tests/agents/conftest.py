"""Both ways to hold a step's processes together, and a clean place to run them in."""

import os
import uuid

import pytest

from crew.system.processes.ownership import kill_marked
from crew.system.processes.process import working_bwrap


def need(available: object, name: str) -> None:
    """Skip a test that needs a program this machine lacks, or fail where all must be there."""
    if not available:
        if os.environ.get("CREW_REQUIRE_ALL") == "1":
            pytest.fail(f"{name} is needed and does not work here")
        pytest.skip(f"{name} does not work here")


@pytest.fixture(params=["bwrap", "off"])
def sandbox(request):
    if request.param == "bwrap":
        need(working_bwrap(), "bwrap")
    return request.param


@pytest.fixture
def marker():
    """A marker nobody else uses; whatever still carries it after the test is ended."""
    name = f"test-{uuid.uuid4()}"
    yield name
    kill_marked(name)
