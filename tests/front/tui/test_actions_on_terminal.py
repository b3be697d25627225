"""The view on a real terminal: it hands it over, and is itself again afterwards."""

import fcntl
import struct
import sys
import termios

from front.tui.terminal_desk import desk  # noqa: F401 - a fixture

VIEW = "import sys; from pathlib import Path; from crew.front.tui.view_app import CrewView; "
VIEW += "CrewView(Path(sys.argv[1])).run()"


def test_attach_exec_and_editor_have_the_terminal_and_give_it_back(desk, on_screen, monkeypatch):  # noqa: F811
    editor = desk.folder / "editor.sh"
    editor.write_text('echo "the editor is here"; sed -i s/First/Second/ "$1"; sleep 0.2\n')
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"sh '{editor}'")
    desk.new("First")
    desk.ok("start", "1")
    screen = on_screen([sys.executable, "-c", VIEW, desk.root], cwd=desk.root)
    fcntl.ioctl(screen.handle, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    screen.until("First")

    screen.type("a")
    screen.until("agent of task 1 is here")
    screen.shown = ""
    screen.type("do echo typed > typed\r")
    screen.until("do echo typed")
    screen.shown = ""
    screen.type("\x07")  # ctrl+g
    screen.until("In Progress")
    assert (desk.worktree() / "typed").read_text() == "typed\n"

    screen.type("x")
    screen.until("Run in the worktree")
    screen.type("echo in-$((40+2)); exit 3\r")
    screen.until("in-42")
    screen.until("exit code 3; press a key to go back")
    screen.shown = ""
    screen.type("k")
    screen.until("In Progress")

    screen.type("E")
    screen.until("the editor is here")
    screen.until("Second")
    screen.type("q")
    assert screen.ended() == 0
    assert desk.task()["title"] == "Second"
