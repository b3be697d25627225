"""The `crew` of the command line's tests, and one person's machine, for attacks from inside."""

import os
import socket

import pytest

from agents.conftest import need
from boundary.sandbox_scene import Place, make_place
from crew.system.processes.process import working_bwrap
from front.conftest import bare_scene, lonely, on_screen, running, scene

__all__ = ["bare_scene", "lonely", "on_screen", "running", "scene"]


@pytest.fixture(params=["strict", "auto"])
def place(described, request) -> Place:
    """A place at each level that confines."""
    need(working_bwrap(), "bwrap")
    described.mode = request.param
    described.configure("[sandbox]\n")
    return described


@pytest.fixture
def described(tmp_path, monkeypatch) -> Place:
    """A place whose descriptions are read: nothing runs there, so bubblewrap is not needed."""
    home = tmp_path / "home of ann"
    home.mkdir()
    for name in [name for name in os.environ if name.startswith(("GIT_", "CREW_", "XDG_"))]:
        if name != "CREW_REQUIRE_ALL":
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    return make_place(tmp_path, home)


@pytest.fixture
def door(place):
    """The listening socket that a step may use."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place.door))
        server.listen()
        yield server
