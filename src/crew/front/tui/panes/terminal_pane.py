"""The terminal of a task, shown live and only to look at: the screen that its tmux has now."""

import time
from typing import ClassVar

from crew.domain.kernel.frozen import frozen
from crew.domain.terminals.dialogs import Dialog
from crew.front.tui.live.picture import News
from crew.front.tui.panes.pane import Pane, Unread
from crew.front.tui.widgets.ansi_spans import AnsiText
from crew.front.tui.widgets.line_list import ShownLine, text_line
from crew.front.tui.widgets.safe_text import safe
from crew.runner.by_hand.task_access import find_screen, terminal_takes
from crew.workplace import Workplace

LINES = 200
LOOK_EVERY_S = 0.2
QUIET_EVERY_S = 2.0
"""How often a screen is looked at whose program prints nothing."""

EMPTY = "no terminal: a attaches, s starts one"


@frozen
class SeenScreen:
    """The lines of a terminal, and the dialog that waits on it."""

    lines: tuple[str, ...] = ()
    dialog: Dialog | None = None
    is_open: bool = False


class TerminalPane(Pane):
    """Follows the end of the screen; scrolling up pauses, G follows again."""

    title: ClassVar[str] = "Terminal"
    keys: ClassVar[str] = "G end"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._seen: SeenScreen | None = None
        self._is_reading = False
        self._looked_at = 0.0
        self._printed: tuple[int, int] = (0, 0)

    def fill(self) -> None:
        self._seen = None
        self._looked_at = 0.0
        self.say("looking for its terminal …" if self.task_id else "no task")

    def tick(self) -> None:
        if self._is_reading or not self.is_settled:
            return
        now, printed = time.monotonic(), self._size_of_log()
        every = QUIET_EVERY_S if printed == self._printed else LOOK_EVERY_S
        if now >= self._looked_at + every:
            is_quiet = printed == self._printed
            self._is_reading, self._looked_at, self._printed = True, now, printed
            self.run_worker(self._look(self.task_id, asks_dialog=is_quiet), exit_on_error=False)

    def _size_of_log(self) -> tuple[int, int]:
        """All that a terminal prints is also in the log of the task."""
        try:
            found = Workplace(root=self.view.root).task_log(self.task_id).stat()
        except OSError:
            return 0, 0
        return found.st_size, found.st_mtime_ns

    async def _look(self, task: str, *, asks_dialog: bool) -> None:
        """Look at the screen; a dialog is looked for once its program prints nothing more."""
        try:
            found = await self.read(lambda workplace: _read_screen(workplace, task, asks_dialog))
        finally:
            self._is_reading = False
        if task != self.task_id:
            return
        if isinstance(found, Unread):
            self._seen = None
            self.say(found.why)
        elif found != self._seen:
            self._seen = found
            self._show_screen(found)

    def take(self, news: News) -> None:
        if self._seen is not None and news.about("terminal", "question"):
            self._show_screen(self._seen)

    def _recorded_dialog(self) -> Dialog | None:
        """The dialog that a runner has seen on this terminal."""
        world = self.picture.world
        task = world.tasks.get(self.task_id)
        terminal = world.terminal_of((task.run if task else None) or "")
        asked = world.questions.get(terminal.dialog) if terminal else None
        if asked is None or not asked.is_open:
            return None
        return Dialog(question=asked.question, context=asked.context, choices=asked.choices)

    def _show_screen(self, screen: SeenScreen) -> None:
        if not screen.is_open:
            self.say(EMPTY)
            return
        was_at_end = self.scroll_offset.y >= self.max_scroll_y
        text = AnsiText()
        lines = [ShownLine(spans=text.spans(line)) for line in screen.lines]
        waiting = _dialog(screen.dialog or self._recorded_dialog())
        self.show([*(lines or [text_line("its screen is empty", "muted")]), *waiting])
        if was_at_end:
            self.scroll_end(animate=False)


def _dialog(found: Dialog | None) -> list[ShownLine]:
    if found is None:
        return []
    choices = " / ".join(safe(one) for one in found.choices)
    return [
        text_line(""),
        text_line(f" a dialog waits: {safe(found.question)}", "warn bold"),
        text_line(f" {choices or 'a attaches to it'}   i answers it", "note"),
    ]


def _read_screen(workplace: Workplace, task: str, asks_dialog: bool) -> SeenScreen:  # noqa: FBT001
    lines = find_screen(workplace, task, count=LINES)
    if lines is None:
        return SeenScreen()
    seen = terminal_takes(workplace, task) if asks_dialog else None
    return SeenScreen(lines=lines, dialog=seen.dialog if seen else None, is_open=True)
