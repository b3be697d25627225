"""Finds out what the program of a terminal takes now: text, or a choice in a dialog.

Claude Code reports its status in a file, a moment after it has drawn a dialog. Of other programs,
and of a Claude Code whose file another one has overwritten (in sandboxes both have the same pid),
the end of the screen decides.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping

from crew.agents.claude.claude_session import session_entries
from crew.agents.terminal import tmux
from crew.agents.terminal.terminal_screen import read_input
from crew.agents.terminal.tmux import Tmux
from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.fact import Fact
from crew.domain.rows.run import Run
from crew.domain.rows.terminal import Terminal
from crew.domain.terminals.dialogs import Dialog, TerminalInput, screens_seen
from crew.domain.world import World
from crew.runner.prompts.step_orders import agent_settings
from crew.system.processes.ownership import running_processes
from crew.workplace import Workplace

_LINES = 48
_KNOWN_PROMPTS = frozenset({"claude", "codex", "codex-exec", "gemini", "opencode"})
"""The adapters whose programs show a prompt, and dialogs, that crew can read on the screen."""

_WAITING = "waiting"
_AT_PROMPT = frozenset({"idle", "busy"})  # while it is busy, it queues what is typed


def terminal_marker(workplace: Workplace, run: str) -> str:
    """A marker of its own, not the runner's: a terminal outlives the runner."""
    return f"pane/{workplace.repo_id}/{run}"


def read_terminal(workplace: Workplace, terminal: Terminal, run: Run) -> TerminalInput | None:
    """What the terminal takes now; None if there is no terminal."""
    server = Tmux(folder=workplace.folder)
    if tmux.find_session(server, terminal.name) is None:
        return None
    adapter = agent_settings(workplace, run.agent_kind).adapter
    status = _claude_status(workplace, run) if adapter == "claude" else ""
    screen = tmux.capture(server, terminal.name, lines=_LINES)
    seen = read_input(screen, has_known_prompt=adapter in _KNOWN_PROMPTS)
    if status in _AT_PROMPT and seen.dialog is None:
        return TerminalInput(takes_text=True)
    if status == _WAITING and seen.dialog is None:
        unread = f"It waits for a person: `crew attach {terminal.task}` shows it."
        return TerminalInput(dialog=Dialog(question=unread, context=screen[-2_000:], choices=()))
    return seen


def terminal_looks(workplace: Workplace, world: World, *, at: float) -> list[Fact]:
    """The facts about dialogs that appeared or closed, and prompts that take text again."""
    return screens_seen(world, read_terminals(workplace, world), at=at)


def read_terminals(workplace: Workplace, world: World) -> Iterable[tuple[Terminal, TerminalInput]]:
    """What each open terminal with a known program takes now."""
    for terminal in world.terminals.values():
        if not terminal.is_open:
            continue
        run = world.runs[terminal.id]
        with contextlib.suppress(CrewError):  # the agent kind or the terminal is gone
            is_known = agent_settings(workplace, run.agent_kind).adapter in _KNOWN_PROMPTS
            seen = read_terminal(workplace, terminal, run) if is_known or terminal.held else None
            if seen is not None:
                yield terminal, seen


def _claude_status(workplace: Workplace, run: Run) -> str:
    """The status that the Claude Code of this terminal reports; empty if it is unknown."""
    environ: Mapping[str, str] = {
        **os.environ,
        **agent_settings(workplace, run.agent_kind).env,
    }
    entries = list(session_entries(environ))
    if not entries:
        return ""
    marker = terminal_marker(workplace, run.id)
    ours = {str(one.started) for one in running_processes().values() if one.marker == marker}
    found = [str(one.get("status", "")) for one in entries if str(one.get("procStart")) in ours]
    return found[0] if len(found) == 1 else ""
