"""The pages are tried in the same repositories as the command line."""

import subprocess

import pytest

from front.conftest import bare_scene, lonely, running, scene

__all__ = ["bare_scene", "lonely", "running", "scene"]


@pytest.fixture
def with_terminals(bare_scene):
    """Ends the terminals that a test opened, also when it fails."""
    yield bare_scene
    if (bare_scene.root / ".crew" / "tmux.sock").exists():
        subprocess.run(
            ["tmux", "-S", "tmux.sock", "kill-server"],
            cwd=bare_scene.root / ".crew",
            capture_output=True,
            check=False,
        )
