"""The scenes of the runner's tests serve here too."""

from runner.conftest import lonely, make_scene

__all__ = ["lonely", "make_scene"]
