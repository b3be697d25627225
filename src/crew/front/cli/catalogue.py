"""The list of all commands with their modules and help lines, so that help imports none of them.

It also names the commands that an agent's process may run; all others are for people.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Entry(NamedTuple):
    """One command; `target` is `module:attribute` below `crew.front.cli`."""

    target: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Setting up": {
        "init": Entry("setup.init:init", "Set up crew in this repository."),
        "doctor": Entry("setup.doctor:doctor", "Check everything that crew needs."),
        "config": Entry("setup.config_command:config", "Show and change the configuration."),
        "trust": Entry(
            "setup.trust_command:trust", "Approve the configuration that a commit brought."
        ),
        "agents": Entry("setup.agents_command:agents", "List the configured agents."),
        "workspace": Entry(
            "setup.workspace_command:workspace",
            "List the repositories that one view shows together.",
        ),
        "demo": Entry("setup.demo:demo", "Watch a crew work in a sample repository."),
        "completion": Entry(
            "setup.completion:completion", "Print or install the shell completion."
        ),
        "plugin": Entry(
            "setup.plugin_command:plugin", "Connect crew to your own Claude Code, Codex or Gemini."
        ),
    },
    "Tasks": {
        "new": Entry("tasks.new:new", "Create a task, or many from a file."),
        "list": Entry("tasks.list_tasks:list_tasks", "List the open tasks."),
        "ready": Entry("tasks.list_tasks:ready", "List the tasks that could start now."),
        "show": Entry("tasks.show:show", "Show everything about a task."),
        "edit": Entry("tasks.edit:edit", "Change a task."),
        "dep": Entry("tasks.dep:dep", "Make a task wait for another one."),
        "undep": Entry("tasks.dep:undep", "Let a task no longer wait for another one."),
        "comment": Entry("tasks.comment:comment", "Comment on a task."),
        "diff": Entry("tasks.diff:diff", "Show what a task has changed."),
        "poll": Entry("tasks.poll:poll", "Wait until the status of a task changes."),
        "close": Entry("tasks.close:close", "Close a task without merging it."),
        "rm": Entry("tasks.rm:rm", "Delete a task."),
    },
    "The crew": {
        "run": Entry(
            "crew.run_command:run", "Run the crew until it is stopped or all work is done."
        ),
        "stop": Entry("crew.stop:stop", "Stop the runner, or the agent of one task."),
        "spawn": Entry("crew.spawn:spawn", "Add idle agents."),
        "dismiss": Entry("crew.spawn:dismiss", "Remove an idle agent."),
        "assign": Entry("crew.assign:assign", "Give a task to an idle agent."),
        "kill": Entry("crew.kill:kill", "End the step of an agent; its task becomes todo."),
        "retry": Entry(
            "crew.retry:retry", "Retry a stuck agent, a failed task or a paused agent kind."
        ),
        "cleanup": Entry("crew.cleanup:cleanup", "Remove an agent's worktree, keep its content."),
        "merge": Entry("crew.merge:merge", "Merge a done task now."),
    },
    "One task at a terminal": {
        "start": Entry("terminal.start:start", "Start a task in its own terminal."),
        "attach": Entry("terminal.attach:attach", "Show the terminal of a task."),
        "send": Entry(
            "terminal.send:send",
            "Send a message to the agent or the reviewers of a task.",
        ),
        "exec": Entry("terminal.exec_command:execute", "Run a command in a task's worktree."),
        "complete": Entry(
            "terminal.complete:complete", "Check finished work and mark the task done."
        ),
        "review": Entry("terminal.review:review", "Review the last commit of a task now."),
        "loop": Entry(
            "terminal.loop:loop", "Run one task through work and review, in the foreground."
        ),
        "resume": Entry(
            "terminal.resume:resume",
            "Continue a run that was interrupted, failed or not merged.",
        ),
        "manager": Entry("terminal.manager_command:manager", "Let an agent manage the tasks."),
    },
    "Quests": {
        "quest": Entry(
            "quests.quest_command:quest", "Have a request planned into items and built."
        ),
        "workflows": Entry(
            "quests.workflows_command:workflows", "List the workflows of quests, or draw one."
        ),
    },
    "Watching": {
        "ps": Entry("watching.ps:ps", "List the agents and what they do."),
        "tui": Entry("view.tui_command:tui", "Open the terminal view, as `crew` alone does."),
        "dashboard": Entry("view.dashboard:dashboard", "Watch the crew live."),
        "peek": Entry("watching.logs:peek", "Show the last lines of what an agent did."),
        "logs": Entry("watching.logs:logs", "Show what an agent said and did."),
        "inbox": Entry("watching.inbox:inbox", "List the open questions, or show one."),
        "answer": Entry("watching.inbox:answer", "Answer a question; its agent continues."),
        "signal": Entry("watching.signal_command:signal", "Report how this step ends; for agents."),
        "mcp": Entry(
            "watching.mcp_command:mcp", "Serve crew's tools to an agent over MCP on stdio."
        ),
        "events": Entry("watching.events:events", "Show what happened, fact by fact."),
        "runs": Entry("watching.runs:runs", "List the runs of one task or of all tasks."),
        "cost": Entry("watching.cost:cost", "Add up tokens and dollars."),
    },
    "Channels": {
        "channel": Entry(
            "channels.channel_command:channel", "Let agents and people talk, one at a time."
        ),
    },
    "Clean up and restore": {
        "checkpoints": Entry(
            "clean_and_restore.restore:checkpoints", "List the checkpoints of a task."
        ),
        "restore": Entry(
            "clean_and_restore.restore:restore", "Write a checkpoint's files to a folder."
        ),
        "prune": Entry(
            "clean_and_restore.prune:prune", "Remove the worktrees and branches of finished tasks."
        ),
        "clean": Entry(
            "clean_and_restore.clean:clean", "Remove all worktrees and state; tasks stay."
        ),
    },
}

ALIASES = {"add": "new", "ls": "list", "d": "dashboard", "wait": "poll"}

LATER = frozenset({"web", "report", "cluster", "worker"})
"""Commands that a later version will have."""

HIDDEN = {
    "_pane-ended": Entry("terminal.terminal_ended:terminal_ended", "Report that a terminal ended."),
    "_manager-door": Entry(
        "terminal.manager_door_command:manager_door", "Start runners for a manager."
    ),
    "_printable": Entry("tasks.diff:make_printable", "Remove control characters from stdin."),
    "_waiting": Entry("watching.assistant_news:waiting", "Print open questions for a hook."),
    "_news": Entry("watching.assistant_news:news", "Print what needs a person, as it happens."),
}
"""Commands that only crew's own scripts, pagers and plugins call."""

COMMANDS: Mapping[str, Entry] = {
    name: entry for section in SECTIONS.values() for name, entry in section.items()
}

HIDDEN |= {"run-review": COMMANDS["review"]}
"""Also the names that commands had before: no list has them, and they work as ever."""

READING = frozenset(
    {
        *("show", "list", "ready", "diff", "poll", "ps", "peek", "logs", "inbox", "events"),
        *(
            "runs",
            "cost",
            "checkpoints",
            "dashboard",
            "tui",
            "workflows",
            "agents",
            "doctor",
            "demo",
        ),
        *("_waiting", "_news", "completion", "config show", "config get", "config template"),
        *("quest list", "quest show", "channel list", "channel show", "channel tail"),
        "workspace list",
    }
)
"""Commands that change nothing, or nothing of this crew."""

WITH_TOKEN = frozenset({"signal", "mcp", "quest plan"})
"""Commands that are refused without the token of a step."""

CHANGING = {"doctor": ("repair",), "comment": ("request_changes", "index", "author")}
CHANGING |= {"complete": ("merge",)}
"""The flags with which a command is for people."""


def _bare(task: str) -> str:
    return task.removeprefix("#").removeprefix("crew-")


OWN: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "comment": lambda given: _bare(given["task"]),
    "exec": lambda given: _bare(given["task"]),
    "complete": lambda given: _bare(given["task"] or os.environ.get("CREW_TASK_ID", "")),
    "_pane-ended": lambda given: str(given["run"]),
}
"""Commands that an agent may run for its own task or run, which the arguments name."""
