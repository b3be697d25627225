"""The pages are tried in the same repositories as the command line."""

from front.conftest import bare_scene, lonely, running, scene

__all__ = ["bare_scene", "lonely", "running", "scene"]
