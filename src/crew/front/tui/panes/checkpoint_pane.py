"""The checkpoints of a task; the chosen one is restored into a folder."""

from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from crew.domain.kernel.frozen import frozen
from crew.front.tui.live.picture import News
from crew.front.tui.panes.pane import Pane, Unread
from crew.front.tui.widgets.line_list import LineList, ShownLine
from crew.front.tui.widgets.paint import fit
from crew.front.tui.widgets.safe_text import safe
from crew.runner.upkeep.kept_work import kept_views, remarks
from crew.workplace import Workplace

EMPTY = "no checkpoint yet: crew takes one after every step of an agent"


@frozen
class KeptRow:
    """A checkpoint, or a remark below it."""

    view: dict[str, Any]
    remark: str = ""
    folder: str = ""

    @property
    def key(self) -> str:
        return f"{self.view['number']} {self.remark}"


class CheckpointPane(Pane):
    """Lists what `crew checkpoints` lists."""

    title: ClassVar[str] = "Checkpoints"
    keys: ClassVar[str] = "enter restore"
    has_cursor: ClassVar[bool] = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "restore", "restore into a folder", show=False),
        Binding("r", "read_again", "read again", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._is_due = self._is_reading = False

    def fill(self) -> None:
        self._is_due = True
        self.say("reading the checkpoints …" if self.task_id else "no task")

    def take(self, news: News) -> None:
        if news.fresh or any(
            fact.kind == "run" and fact.subject.rpartition(".")[0] == self.task_id
            for _, fact in news.facts
        ):
            self._is_due = True

    def action_read_again(self) -> None:
        self._is_due = True

    def tick(self) -> None:
        if self._is_due and self.is_settled and not self._is_reading:
            self._is_due, self._is_reading = False, True
            self.run_worker(self._read(self.task_id), exit_on_error=False)

    async def _read(self, task: str) -> None:
        try:
            found = await self.read(lambda workplace: _kept_rows(workplace, task))
        finally:
            self._is_reading = False
        if task != self.task_id:
            self._is_due = True
        elif isinstance(found, Unread):
            self.say(found.why)
        elif not found:
            self.say(EMPTY)
        else:
            self.show(found, _line_of, key_of=lambda row: row.key)

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        message.stop()
        self.action_restore()

    def action_restore(self) -> None:
        if isinstance(self.cursor_row, KeptRow):
            self.run_worker(self._restore(self.task_id, self.cursor_row), exit_on_error=False)

    async def _restore(self, task: str, row: KeptRow) -> None:
        number = str(row.view["number"])
        folder = await self.view.write(
            f"Restore checkpoint {number} of task {task} into this folder", text=row.folder
        )
        if not folder or not folder.strip():
            return
        into = str(Path(folder.strip()).expanduser())
        reply = await self.view.command("restore", f"--into={into}", "--", task, number)
        if not reply.is_refused:
            self.view.notify(f"restored into {safe(into)}", markup=False)


def _kept_rows(workplace: Workplace, task: str) -> list[KeptRow]:
    rows: list[KeptRow] = []
    for view in kept_views(workplace, task):
        folder = str(workplace.worktrees / f"restored-{task}-{view['number']}")
        rows.append(KeptRow(view=view, folder=folder))
        rows += [
            KeptRow(view=view, remark=words, folder=folder) for words in remarks(workplace, view)
        ]
    return rows


def _line_of(row: KeptRow, _width: int) -> ShownLine:
    if row.remark:
        return ShownLine(spans=(("     ", ""), (safe(row.remark), "note")), key=row.key)
    view = row.view
    spans = (
        (f" {view['number']:>3}  ", "bold"),
        (f"{view['commit'][:12]}  ", "muted"),
        (fit(safe(view["at"] or ""), 20), "muted"),
        ("  ", ""),
        (safe(view["label"]), ""),
    )
    return ShownLine(spans=spans, key=row.key)
