"""The repository and the `crew` of the command line's tests, for attacks from outside."""

from front.conftest import bare_scene, lonely, running, scene

__all__ = ["bare_scene", "lonely", "running", "scene"]
