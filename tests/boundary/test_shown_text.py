"""What an agent writes cannot steer the terminal of the person who looks at it."""

from front.conftest import CREW

EVIL = "\x1b]0;owned\x07\x1b[2Jcleared\x9b31mred \u202eback\n"


def evil_task(scene):
    scene.ok("new", "--title", "x")
    (scene.folder / "evil").write_text(EVIL)
    agent = 'cp "$SCENE/evil" evil; git add -A; git commit -q -m evil; exit 1\n'
    (scene.folder / "agent.sh").write_text(agent)
    scene.crew("run", "--drain", "--agents", "1")


def test_a_diff_on_a_terminal_has_git_s_colours_and_no_other_control_character(
    scene, on_screen, monkeypatch
):
    evil_task(scene)
    monkeypatch.setenv("GIT_PAGER", "cat")
    screen = on_screen([CREW, "diff", "1"], cwd=scene.root)
    assert screen.ended() == 0
    assert "\x1b[32m+" in screen.shown
    assert "cleared" in screen.shown
    assert not any(sign in screen.shown for sign in ("\x1b]", "\x1b[2J", "\x9b", "\x07", "\u202e"))
    monkeypatch.delenv("GIT_PAGER")
    monkeypatch.setenv("PAGER", "sed s/cleared/paged/")
    screen = on_screen([CREW, "diff", "1"], cwd=scene.root)
    assert screen.ended() == 0
    assert "paged" in screen.shown


def test_a_diff_in_a_pipe_is_what_git_printed(scene):
    evil_task(scene)
    assert "\x1b]0;owned\x07\x1b[2Jcleared" in scene.ok("diff", "1").out
    assert "\x1b[32m" not in scene.ok("diff", "1").out
    document = scene.ok("diff", "1", "--json")
    assert "\u202eback" in document.json["diff"]
    assert document.out.isprintable() or document.out.rstrip("\n").isprintable()
