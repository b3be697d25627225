"""People who work at terminals in a simulated crew: they start, type, complete, stop and vanish."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from crew.domain.kernel.names import terminal_name
from crew.domain.rows.question import About
from crew.domain.rows.run import Ask, Run
from crew.domain.rows.task import TaskState
from crew.domain.terminals.dialogs import Dialog, TerminalInput, screens_seen
from crew.domain.terminals.terminal_outcomes import ended
from crew.runner.engine import Engine
from crew.runner.outside.outside import StepCall
from simulation.outside import Crashed, SimulatedOutside, State

SHARE = 0.3
"""How many histories have people at terminals; the others are as they were without them."""

SHOWING = 0.3
"""How many of those have programs that show dialogs."""

STAY_S = 150
"""How long people stay before they bring to an end what they opened."""

LOOK_EVERY_S = 10.0

DIALOGS = tuple(
    Dialog(question=f"May I {what}?", context="", choices=("Yes", "No"))
    for what in ("read", "write")
)

Asking = Callable[..., None]


@dataclass(frozen=True, slots=True)
class People:
    """Chance of their own: a history without them is the same one as before there were any."""

    state: State
    chance: random.Random
    ask: Asking
    dialogs: random.Random | None = None  # in histories whose programs show some

    async def live(self, engine: Engine, outside: SimulatedOutside) -> None:
        while True:
            await asyncio.sleep(self.chance.uniform(0.1, 6))
            if self.dialogs:
                self._show_or_answer(engine, self.dialogs)
            if self.chance.random() < 0.3:
                self._start(engine)
            elif open_runs := self._open_runs(engine):
                self._act(engine, outside, self.chance.choice(open_runs))

    async def look(self, engine: Engine) -> None:
        """What the runner does now and then: find sessions that ended without a word."""
        while True:
            self.notice(engine)
            await asyncio.sleep(LOOK_EVERY_S)

    def notice(self, engine: Engine) -> None:
        alive = {pane.pid for pane in self.state.panes.values()}
        for one in list(engine.world.terminals.values()):
            if one.pid is not None and not one.leaving and one.pid not in alive:
                how = {"number": one.number, "code": None, "at": engine.now()}
                try:
                    engine.record(ended(engine.world, one.id, **how))
                except Crashed:
                    engine.outside.dead = True
                    engine.changed.set()
        if self.dialogs:
            self._notice_screens(engine)

    def _notice_screens(self, engine: Engine) -> None:
        shown = self.state.dialogs
        screens = [
            (one, TerminalInput(takes_text=one.name not in shown, dialog=shown.get(one.name)))
            for one in engine.world.terminals.values()
            if one.name in self.state.panes
        ]
        try:
            engine.record(screens_seen(engine.world, screens, at=engine.now()))
        except Crashed:
            engine.outside.dead = True
            engine.changed.set()

    def _show_or_answer(self, engine: Engine, chance: random.Random) -> None:
        """A program shows a dialog; a person answers one, in the inbox or at the terminal."""
        names = sorted(self.state.panes)
        name = chance.choice(names) if names else ""
        what = chance.random()
        if name and what < 0.3:
            self.state.dialogs.setdefault(name, chance.choice(DIALOGS))
        elif name and what < 0.4:
            self.state.dialogs.pop(name, None)
        elif what < 0.7:
            for question in list(engine.world.questions.values()):
                if question.is_open and question.about == About.DIALOG:
                    self.ask(engine, "answer", question=question.id, text=chance.choice("12"))

    def finish(self, engine: Engine, outside: SimulatedOutside) -> None:
        """Once the faults are over everybody comes to an end with what they opened."""
        self.state.dialogs.clear()
        self.notice(engine)
        for run in self._open_runs(engine):
            self._work(engine, outside, run)
            how = self.chance.choice([self._complete, self._stop, self._hand_over])
            how(engine, run)
        for task in list(engine.world.tasks.values()):
            if task.state == TaskState.DONE and not task.is_queued:
                self.ask(engine, "merge", task=task.id)

    def _open_runs(self, engine: Engine) -> list[Run]:
        runs = engine.world.runs
        return [runs[pane.run] for pane in self.state.panes.values() if pane.run in runs]

    def _start(self, engine: Engine) -> None:
        task = self.chance.choice(sorted(engine.world.tasks))
        self.ask(
            engine,
            "start",
            task=task,
            default_kind="scripted",
            headless=self.chance.random() < 0.2,
            resume=self.chance.random() < 0.5,
        )

    def _act(self, engine: Engine, outside: SimulatedOutside, run: Run) -> None:
        deeds = [self._complete, self._complete, self._stop, self._hand_over, self._vanish]
        deeds += [self._end, self._end_late, self._merge, self._change, self._signal]
        if self.chance.random() < 0.6:
            self._work(engine, outside, run)
        else:
            self.chance.choice(deeds)(engine, run)

    def _work(self, engine: Engine, outside: SimulatedOutside, run: Run) -> None:
        """As an agent would, also what a trial merge asks for."""
        repo, task = self.state.repo, engine.world.tasks[run.task]
        if run.ask == Ask.CONFLICT and not run.merge_commit:
            landed, tip = repo.integration_of(task.target), repo.tip_of(task.target)
            run = replace(run, merge_commit=tip if repo.contains(landed, tip) else landed)
        if task.worktree:
            outside.work(
                StepCall(
                    run=run,
                    task=task,
                    resume=False,
                    started=lambda _pid: None,
                    doing=lambda _words: None,
                )
            )

    def _complete(self, engine: Engine, run: Run) -> None:
        self.ask(engine, "complete", task=run.task)

    def _stop(self, engine: Engine, run: Run) -> None:
        self.ask(engine, "stop_task", task=run.task)

    def _hand_over(self, engine: Engine, run: Run) -> None:
        self.ask(engine, "start", task=run.task, default_kind="scripted", headless=True)

    def _merge(self, engine: Engine, run: Run) -> None:
        self.ask(engine, "merge", task=run.task)

    def _change(self, engine: Engine, run: Run) -> None:
        self.ask(engine, "changes", task=run.task, notes="more of it")

    def _signal(self, engine: Engine, run: Run) -> None:
        self.ask(
            engine,
            "signal",
            run=run.id,
            terminal=engine.world.terminals[run.id].number,
            signal="complete",
            summary="all of it",
        )

    def _vanish(self, engine: Engine, run: Run) -> None:
        self.state.panes.pop(terminal_name(run.task), None)

    def _end(self, engine: Engine, run: Run) -> None:
        self.state.panes.pop(terminal_name(run.task), None)
        for _ in range(self.chance.choice([1, 1, 2])):
            self._say_ended(engine, run.id, engine.world.terminals[run.id].number)

    def _end_late(self, engine: Engine, run: Run) -> None:
        """A word about an earlier session, which says nothing about this one."""
        self._say_ended(engine, run.id, engine.world.terminals[run.id].number - 1)

    def _say_ended(self, engine: Engine, run: str, number: int) -> None:
        self.ask(
            engine, "terminal_ended", run=run, number=number, code=self.chance.choice([0, 1, 137])
        )
