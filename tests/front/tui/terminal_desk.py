"""A crew whose agents work at terminals and do what is typed there, for stories before the view."""

from contextlib import nullcontext

import pytest

from crew.front.tui.view_app import CrewView
from front.test_cli_sessions import CONFIG, HEADLESS, Context

PANE = """\
echo "agent of task $CREW_TASK_ID is here"
while read -r line; do
  echo "$line" >> "$SCENE/told-$CREW_TASK_ID"
  case "$line" in "do "*) eval "${line#do }" ;; esac
done
"""
"""What begins with `do` is done; all that it is told is written down."""


def make_desk(bare_scene):
    scene = Context(bare_scene.root, bare_scene.folder)
    for name, text in (("pane", PANE), ("headless", HEADLESS)):
        (scene.folder / f"{name}.sh").write_text(text)
    scene.ok("init")
    config = CONFIG.format(folder=scene.folder).replace('reviewer_default = "judge"\n', "")
    (scene.root / ".crew" / "config.toml").write_text(
        config.replace(
            "[agents.fake]\n",
            '[agents.fake]\ndescription = "does what is typed"\ndefault_model = "small"\n',
        )
    )
    return scene


@pytest.fixture
def desk(bare_scene):
    scene = make_desk(bare_scene)
    yield scene
    (scene.folder / "wait").unlink(missing_ok=True)
    scene.end()
    scene.tmux("kill-server")


@pytest.fixture
def handed_over(monkeypatch):
    """The terminal of the tests is handed over as a real one is."""
    monkeypatch.setattr(CrewView, "suspend", lambda _view: nullcontext())
