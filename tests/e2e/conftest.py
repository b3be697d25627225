"""The scenes of the runner's tests serve here too."""

from front.conftest import bare_scene
from runner.conftest import lonely, make_scene

__all__ = ["bare_scene", "lonely", "make_scene"]
