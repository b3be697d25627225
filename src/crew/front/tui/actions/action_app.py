"""The part of the view that carries out actions: commands, dialogs, the terminal, own keys."""

import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from textual import events
from textual.app import SuspendNotSupported
from textual.binding import Binding
from textual.notifications import SeverityLevel
from textual.widgets import Input, TextArea

from crew.domain.kernel.errors import CrewError
from crew.front.tui.actions.action import Action
from crew.front.tui.actions.action_table import ACTIONS, BY_NAME
from crew.front.tui.actions.carry_out import CommandReply, carry_out
from crew.front.tui.actions.custom_keys import clashes, run_custom, usable_keys
from crew.front.tui.actions.held_keys import HeldKeys, current_holder, held_by, taken_by
from crew.front.tui.actions.help_sections import built_in_keys
from crew.front.tui.board.choice_memory import ChoiceMemory, load_view
from crew.front.tui.board.view_choices import ViewChoices, choices_in
from crew.front.tui.colours import is_dark_terminal
from crew.front.tui.dialogs.choice import Choice
from crew.front.tui.dialogs.choice_dialog import ChoiceDialog
from crew.front.tui.dialogs.confirm_dialog import ConfirmDialog
from crew.front.tui.dialogs.text_dialog import TextDialog
from crew.front.tui.live.picture import Picture
from crew.front.tui.live.reader_thread import ReaderThread
from crew.front.tui.view_frame import ViewFrame
from crew.front.tui.widgets.safe_text import safe
from crew.runner.by_hand.crew_command import run_in_person_terminal
from crew.system.bounded_log import LogHandler

P = ParamSpec("P")
R = TypeVar("R")

_ONLY_ON_TOP = frozenset({"custom", "next_page"})
"""Actions of keys that a dialog or a field needs itself."""


class ActionApp(ViewFrame):
    """An app with a crew, a chosen task and a table of actions."""

    actions: tuple[Action, ...] = ACTIONS

    def __init__(
        self, root: Path, *, choices: ViewChoices | None = None, is_dark: bool | None = None
    ) -> None:
        loaded = load_view(root)
        super().__init__(is_dark=is_dark_terminal(loaded.theme) if is_dark is None else is_dark)
        self.root = root
        self.picture = Picture()
        self.last_exec = ""
        remembered = choices_in(loaded.settings) if loaded.settings else ViewChoices()
        self.choices = choices or remembered
        bindings = loaded.settings.keybindings if loaded.settings else {}
        built_in = built_in_keys(self.actions)
        self.custom_keys = usable_keys(bindings, built_in)
        self._problems = [*filter(None, [loaded.problem]), *clashes(bindings, built_in)]
        self.held_keys = HeldKeys()
        self._memory = ChoiceMemory(root, self._forgot)
        self._has_forgotten = False
        self._reader: ReaderThread

    # What the view has chosen

    @property
    def chosen_task(self) -> str:
        return ""

    # Keys

    def bind_actions(self) -> None:
        """Bind every action and every own key, and report what is wrong with the own ones."""
        for action in self.actions:
            if action.key not in self.custom_keys:
                self._bind(action.key, f"act('{action.name}')", action.title)
        for key, bound in self.custom_keys.items():
            self._bind(key, f"custom({key!r})", bound.description, priority=bound.override)
        for problem in self._problems:
            self.notify(problem, severity="error", timeout=20)

    def _bind(self, key: str, action: str, title: str, *, priority: bool = False) -> None:
        *before, last = (key,) if len(key) == 1 else key.split("+")
        last = "comma" if last == "," else last
        made = Binding.make_bindings([Binding(last, action, title, show=False, priority=priority)])
        for one in made:
            named = replace(one, key="+".join((*before, one.key)))
            self._bindings.key_to_bindings.setdefault(named.key, []).append(named)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in _ONLY_ON_TOP and (
            len(self.screen_stack) > 1 or isinstance(self.focused, Input | TextArea)
        ):
            return False
        return super().check_action(action, parameters)

    # Actions

    async def on_event(self, event: events.Event) -> None:
        """Take keys one after the other: each finds what the one before it has opened."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self.held_keys.passed()
            if isinstance(self.focused, Input | TextArea):
                await taken_by(self.focused)
            elif isinstance(event, events.Key) and await self._is_bound(event.key):
                return
        await super().on_event(event)

    async def _is_bound(self, key: str) -> bool:
        """Carry out what a key of the board is bound to, before the next key is read."""
        if len(self.screen_stack) > 1:
            return False
        check = self._check_bindings  # Textual's own order: the focused widget first
        return await check(key, priority=True) or await check(key)

    def action_act(self, name: str) -> None:
        """Carry out an action of the table; dialogs wait inside it, the view does not."""
        self._work(self.carry_action(name))

    def action_custom(self, key: str) -> None:
        self._work(self._guarded(run_custom, self.custom_keys[key]))

    def _work(self, work: Coroutine[Any, Any, None]) -> None:
        holder = object()
        self.held_keys.hold(holder)
        self.run_worker(self._until_end(work, holder), group="actions", exit_on_error=False)

    async def _until_end(self, work: Coroutine[Any, Any, None], holder: object) -> None:
        try:
            with held_by(holder):
                await work
        finally:
            self.held_keys.let_pass(holder)

    async def carry_action(self, name: str) -> None:
        """Carry out an action; an error is shown and recorded, and the view stays open."""
        action = BY_NAME[name]
        if refusal := self._why_not(action):
            self.notify(refusal, severity="warning")
            return
        await self._guarded(action.act)

    async def _guarded(self, act: Callable[..., Any], *args: Any) -> None:
        try:
            await act(self, *args)
        except CrewError as error:
            self.notify(f"{error.message}\n{error.hint}", severity="error")
        except Exception as error:  # noqa: BLE001 - an action must not end the view
            _record(self.root, error)
            self.notify(
                f"{type(error).__name__}: {error}\nthe view continues; see .crew/logs/view.log",
                severity="error",
            )

    def _why_not(self, action: Action) -> str:
        if self.choices.namespace and not action.in_other_namespaces:
            name = self.choices.namespace
            return f"the crew does not work on the namespace {name}: N goes back to its own"
        if action.needs_task and not self.chosen_task:
            return "choose a task first"
        return ""

    def task_actions(self, state: str) -> Iterator[Action]:
        """The actions that are possible for a task in this state."""
        for action in self.actions:
            is_possible = not action.states or state in action.states
            is_offered = action.section == "Task" and action.in_menu and is_possible
            if is_offered and not self._why_not(action):
                yield action

    # For actions

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message as text: what it quotes may come from anywhere."""
        lines = [safe(line)[:300] for line in message.splitlines() if line.strip()]
        super().notify(
            "\n".join(lines[:4]), title=title, severity=severity, timeout=timeout, markup=markup
        )

    async def command(self, *args: str, stdin: str = "", done: str = "") -> CommandReply:
        """Run a command of crew and show its refusal, or that it is done."""
        self.held_keys.let_pass(current_holder())
        reply = await carry_out(args, directory=self.root, stdin=stdin)
        self.expect_tasks()
        if reply.is_refused:
            self.notify(f"{reply.failure}\n{reply.hint}", severity="error")
        else:
            self.notify(done or f"crew {args[0]}: done")
        return reply

    async def confirm(self, question: str) -> bool:
        answer = await self.push_screen_wait(ConfirmDialog(question))
        return answer is True

    async def choose(
        self, title: str, choices: Sequence[Choice], *, searchable: bool = False
    ) -> str | None:
        """The value that the person chooses; None for none."""
        return await self.push_screen_wait(ChoiceDialog(title, choices, searchable=searchable))

    async def write(self, title: str, *, text: str = "", several_lines: bool = False) -> str | None:
        """The text that the person writes; None if they leave."""
        return await self.push_screen_wait(
            TextDialog(title, text=text, several_lines=several_lines)
        )

    def in_terminal(self, *args: str, waits: bool = False) -> int | None:
        """Hand the person's terminal to a command of crew, and take it back at its end.

        With `waits`, and after a failure, the person reads what it printed and presses a key.
        """
        return self.hand_over_terminal(
            run_in_person_terminal, args, directory=self.root, waits=waits
        )

    def hand_over_terminal(
        self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R | None:
        """Do work that owns the person's terminal; None if this terminal cannot be handed over."""
        result: R | None = None
        failure: Exception | None = None
        try:
            with self.suspend():
                try:
                    result = work(*args, **kwargs)
                except Exception as error:  # noqa: BLE001 - raised below, once the view has its terminal
                    failure = error
        except SuspendNotSupported:
            self.notify("this terminal cannot be handed over", severity="error")
        finally:
            self.read_anew()
            self.refresh(layout=True)
        if failure is not None:
            raise failure
        return result

    def expect_tasks(self) -> None:
        self._reader.expect_tasks()

    def read_anew(self) -> None:
        self._reader.read_anew()

    # What is remembered

    def remember(self, **changes: Any) -> None:
        """Change choices and keep them for the next time."""
        before, self.choices = self.choices, replace(self.choices, **changes)
        self._memory.keep(before, self.choices)

    def _forgot(self, reason: str) -> None:
        """Called in the thread of the memory; one notice is enough."""
        if not self._has_forgotten:
            self._has_forgotten = True
            self.notify(f"this choice is not kept: {reason}", severity="warning")


def _record(root: Path, error: Exception) -> None:
    """Write an unexpected error to the log of the view, which has a screen and no stderr."""
    if not (root / ".crew").is_dir():
        return
    handler = LogHandler(root / ".crew" / "logs" / "view.log")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    traced = (type(error), error, error.__traceback__)
    words = "an action of the view failed"
    handler.handle(logging.LogRecord("crew.view", logging.ERROR, __file__, 0, words, None, traced))
