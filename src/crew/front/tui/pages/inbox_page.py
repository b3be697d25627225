"""The inbox: what waits for a person, with its context and the last words of the session."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from crew.domain.kernel.errors import CrewError
from crew.domain.rows.question import About
from crew.front.cli.terminal.open_terminals import runs_at_terminals
from crew.front.entry_lines import EntryLine
from crew.front.tui.board.kept_results import by_identity
from crew.front.tui.dialogs.choice_dialog import Choice
from crew.front.tui.live.picture import News
from crew.front.tui.live.session_words import read_last_lines
from crew.front.tui.pages.sheet_page import SheetPage
from crew.front.tui.widgets.line_list import LineList, ShownLine, heading, text_line
from crew.front.tui.widgets.paint import fit
from crew.front.tui.widgets.safe_text import safe
from crew.front.tui.widgets.sheet import wrapped
from crew.runner.views.proposal_views import KIND as CONFIG_KIND
from crew.runner.views.proposal_views import config_entries
from crew.runner.views.row_views import open_question_views
from crew.workplace import Workplace

Entry = Mapping[str, Any]

LAST_LINES = 12
LOOK_EVERY_S = 2.0
_WATCHED = (".crew.toml", ".crew/config.toml", ".crew/workflows", ".git/index", ".git/HEAD")
"""A change of one of these may propose other configuration."""

_SYMBOLS = {
    "suspicion": ("!", "bad"),
    "outage": ("!", "bad"),
    "rewrite": ("!", "warn"),
    CONFIG_KIND: ("?", "warn"),
}
OWN_WORDS = "\0own words"

_open_entries = by_identity(open_question_views)


class InboxPage(SheetPage):
    """The open questions, suspicions, outages and proposals; enter answers the chosen one."""

    title: ClassVar[str] = "Inbox"
    empty: ClassVar[str] = "no open questions"
    kinds: ClassVar[tuple[str, ...]] = ("question", "suspicion", "outage", "line")
    DEFAULT_CSS = "InboxPage { height: auto; min-height: 3; max-height: 40%; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "answer", "answer", show=False)]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._proposed: Sequence[Entry] = ()
        self._files: Sequence[object] | None = None
        self._known: frozenset[str] | None = None
        self._words: tuple[str, Sequence[EntryLine]] = ("", ())

    def on_mount(self) -> None:
        self.set_interval(LOOK_EVERY_S, self._look_for_proposals)
        self._look_for_proposals()

    # What is listed

    def entries(self) -> list[Entry]:
        return [*_open_entries(self.picture.world), *self._proposed]

    def take(self, news: News) -> None:
        super().take(news)
        if self.concerns(news):
            self._announce()

    def list_again(self) -> None:
        found = self.entries()
        if found:
            self.show(found, self._line_of, key_of=lambda entry: entry["id"])
        else:
            self.show(self.nothing())
        self.tell()

    def badge(self) -> str:
        return str(len(self.entries()) or "")

    def _line_of(self, entry: Entry, _width: int) -> ShownLine:
        symbol, style = _SYMBOLS.get(entry["kind"], ("?", "warn"))
        about = f"task {entry['task']}" if entry["task"] else entry["kind"].replace("_", " ")
        asked = str(entry["asked_at"])[5:16].replace("T", " ")
        spans = (
            (f"{symbol} ", style),
            (fit(safe(entry["id"]), 7), "bold"),
            (fit(safe(about), 14), "muted"),
            (fit(safe(entry["role"]), 10), "note"),
            (fit(asked, 12), "muted"),
            (safe(entry["question"]), ""),
        )
        return ShownLine(spans=spans, key=entry["id"])

    @property
    def entry(self) -> Entry | None:
        row = self.cursor_row
        return row if isinstance(row, Mapping) else None

    def chosen_task(self) -> str:
        return str(self.entry["task"]) if self.entry else ""

    def _announce(self) -> None:
        """Announce each new entry once; the tab's number counts those at the start."""
        found = {entry["id"]: entry for entry in self.entries()}
        known, self._known = self._known, frozenset(found)
        for name in () if known is None else found.keys() - known:
            entry = found[name]
            about = f"task {entry['task']}: " if entry["task"] else ""
            words = f"{about}{safe(entry['question'])[:200]} (i opens the inbox)"
            self.app.notify(words, title=f"Inbox {safe(name)}", severity="warning", markup=False)

    # Proposals are files, so no fact announces them

    def _look_for_proposals(self) -> None:
        now = [_stamp(self.view.root / name) for name in _WATCHED]
        if now != self._files:
            self._files = now
            self.run_worker(self._read_proposals(), group="proposals", exclusive=True)
        self._look_at_terminals()

    def _look_at_terminals(self) -> None:
        """Without a runner nothing else notices that a terminal shows a dialog."""
        is_up = any(one.is_up for one in self.picture.world.terminals.values())
        if is_up and self.picture.runner is None and self.is_in_sight:
            look = asyncio.to_thread(_note_dialogs, self.view.root)
            self.run_worker(look, group="terminals", exclusive=True, exit_on_error=False)

    async def _read_proposals(self) -> None:
        found = await asyncio.to_thread(_proposals, self.view.root)
        if found != self._proposed:
            self._proposed = found
            if self._known is not None:
                self._announce()
            self._is_stale = True
            self.catch_up()

    # The chosen one

    def on_line_list_chosen(self, message: LineList.Chosen) -> None:
        if message.lines is self:
            message.stop()
            self.action_answer()

    def tell(self) -> None:
        entry = self.entry
        if entry is None:
            self.sheet.tell(lambda _width: [])
            return
        if entry["task"] and self._words[0] != entry["id"]:
            self._words = (entry["id"], ())
            self.run_worker(self._read_words(entry), group="words", exclusive=True)
        is_new = self.is_another(entry["id"])
        self.sheet.tell(lambda width: list(self._lines(entry, width)), is_new=is_new)

    def _lines(self, entry: Entry, width: int) -> Iterator[ShownLine]:
        yield from wrapped(entry["question"], width, "bold")
        if entry["context"]:
            yield text_line("")
            yield from wrapped(entry["context"], width, before=("│ ", "muted"))
        yield text_line("")
        for number, choice in enumerate(entry["choices"], start=1):
            yield ShownLine(spans=((f"{number}. ", "key"), (safe(choice), "")))
        yield ShownLine(spans=(("enter ", "key"), (_way_out(entry), "muted")))
        name, words = self._words
        if words and name == entry["id"]:
            yield text_line("")
            yield heading(f"last words of task {safe(entry['task'])}")
            for one in words:
                yield ShownLine(spans=((safe(one.text), one.style),))

    async def _read_words(self, entry: Entry) -> None:
        words = await asyncio.to_thread(
            read_last_lines, self.view.root, entry["task"], count=LAST_LINES
        )
        self._words = (entry["id"], words)
        if self.entry is not None and self.entry["id"] == entry["id"]:
            self.tell()

    # Answers

    def action_answer(self) -> None:
        if self.entry is not None:
            self.app.run_worker(self._answer(self.entry), exit_on_error=False)

    async def _answer(self, entry: Entry) -> None:
        view = self.view
        name = entry["id"]
        if entry["kind"] == "outage":
            if await view.confirm(f"Is {name} fixed, so that crew can try it again?"):
                await view.command("retry", "--", name)
        elif entry["kind"] == CONFIG_KIND:
            if await view.confirm("Approve all of this configuration?"):
                await view.command("trust", "--yes")
                self._files = None
        elif entry["kind"] == About.DIALOG and not entry["choices"]:
            view.in_terminal("attach", "--", entry["task"])
        elif (text := await self._words_of_person(entry)) is not None and text.strip():
            await view.command("answer", "--", name, "-", stdin=text)

    async def _words_of_person(self, entry: Entry) -> str | None:
        title = f"{entry['id']}: {entry['question']}"
        if not entry["choices"]:
            return await self.view.write(title, several_lines=True)
        choices = [Choice(value=one, title=one) for one in entry["choices"]]
        if entry["kind"] == About.INPUT:
            choices.append(Choice(value=OWN_WORDS, title="something else …"))
        chosen = await self.view.choose(title, choices)
        if chosen != OWN_WORDS:
            return chosen
        return await self.view.write(title, several_lines=True)


def _way_out(entry: Entry) -> str:
    if entry["kind"] == "outage":
        return f"tries it again, as `crew retry {safe(entry['id'])}` does"
    if entry["kind"] == CONFIG_KIND:
        return "approves it, as `crew trust` does"
    if entry["kind"] == About.DIALOG and not entry["choices"]:
        return f"opens its terminal, as `crew attach {safe(entry['task'])}` does"
    return "chooses an answer" if entry["choices"] else "writes an answer"


def _stamp(path: Path) -> object:
    try:
        found = os.stat(path)  # noqa: PTH116 - twice as fast, and it is asked for every two seconds
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _note_dialogs(root: Path) -> None:
    workplace = Workplace(root=root)
    try:
        runs_at_terminals(workplace.folder, workplace.db)
    except (CrewError, OSError):
        return
    finally:
        workplace.close_database()


def _proposals(root: Path) -> Sequence[Entry]:
    try:
        return config_entries(Workplace(root=root))
    except (CrewError, OSError):
        return ()  # the status line shows what is wrong with the configuration
