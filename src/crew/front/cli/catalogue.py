"""Every command: where its code is and one line of help, so that help needs none of the code."""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """`target` is `module:attribute` below `crew.front.cli`."""

    target: str
    help: str


SECTIONS: Mapping[str, Mapping[str, Entry]] = {
    "Setting up": {
        "init": Entry("init:init", "Set up crew in this repository."),
        "doctor": Entry("doctor:doctor", "Check everything crew needs and say how to fix it."),
        "config": Entry("config:config", "Show and change the configuration."),
        "agents": Entry("agents:agents", "List the configured agents."),
        "demo": Entry("demo:demo", "Watch a crew at work in a sample repository."),
        "completion": Entry("completion:completion", "Print or install the completion of a shell."),
    },
    "Tasks": {
        "new": Entry("new:new", "Make a task, or many from a file."),
        "list": Entry("listing:list_tasks", "List the open tasks."),
        "ready": Entry("listing:ready", "List the tasks that could start now."),
        "show": Entry("show:show", "Show everything about a task."),
        "edit": Entry("editing:edit", "Change a task."),
        "dep": Entry("changing:dep", "Make a task wait for another one."),
        "undep": Entry("changing:undep", "Let a task no longer wait for another one."),
        "comment": Entry("commenting:comment", "Say something about a task."),
        "diff": Entry("diff:diff", "Show what a task has changed."),
        "poll": Entry("poll:poll", "Wait until the status of a task changes."),
        "close": Entry("changing:close", "Give a task up without merging it."),
        "rm": Entry("changing:rm", "Delete a task."),
    },
    "The crew": {
        "run": Entry("run:run", "Run the crew until you stop it, or until all is done."),
        "stop": Entry("stop:stop", "Stop the runner, or whoever works at a task."),
        "spawn": Entry("crew_agents:spawn", "Add idle agents."),
        "dismiss": Entry("crew_agents:dismiss", "Remove an idle agent."),
        "assign": Entry("crew_agents:assign", "Give a task to an idle agent."),
        "kill": Entry("crew_agents:kill", "End what an agent does; its task goes back to todo."),
        "retry": Entry("crew_agents:retry", "Let a stuck agent or a failed task try again."),
        "cleanup": Entry("crew_agents:cleanup", "Remove an agent's worktree, keep its content."),
        "merge": Entry("merge:merge", "Merge a done task now."),
    },
    "One task at a terminal": {
        "start": Entry("starting:start", "Start a task in a terminal session of its own."),
        "attach": Entry("terminal:attach", "Show the terminal session of a task."),
        "send": Entry("terminal:send", "Send a message to the agent or the reviewers of a task."),
        "exec": Entry("terminal:execute", "Run a command in a task's worktree."),
        "complete": Entry("completing:complete", "Have finished work checked, so that it is done."),
        "review": Entry("completing:review", "Have the last commit of a task reviewed now."),
        "loop": Entry("looping:loop", "Run one task through work and review, in the foreground."),
        "resume": Entry(
            "looping:resume", "Go on with a run that was interrupted, failed, or is not merged yet."
        ),
        "manager": Entry("manager:manager", "Let an agent manage the tasks."),
    },
    "Quests": {
        "quest": Entry("quests:quest", "Have a request planned into steps and carried out."),
        "workflows": Entry("workflows:workflows", "List the workflows of quests, or draw one."),
    },
    "Watching": {
        "ps": Entry("ps:ps", "List the agents and what they do."),
        "dashboard": Entry("dashboard:dashboard", "Watch the crew live."),
        "peek": Entry("logs:peek", "Show the last lines an agent printed."),
        "logs": Entry("logs:logs", "Show what an agent printed."),
        "inbox": Entry("speaking:inbox", "List the questions that wait for a person, or show one."),
        "answer": Entry("speaking:answer", "Answer a question; the agent goes on with it."),
        "signal": Entry("speaking:signal", "Tell crew how this step ends; for agents."),
        "mcp": Entry("mcp:mcp", "Give an agent crew's tools over MCP, on stdin and stdout."),
        "channel": Entry("channels:channel", "Let agents and people talk, one at a time."),
        "events": Entry("events:events", "Show what happened, fact by fact."),
        "runs": Entry("costs:runs", "List the tries at a task, or at all tasks."),
        "cost": Entry("costs:cost", "Add up tokens and dollars."),
    },
    "Undoing": {
        "checkpoints": Entry("undo:checkpoints", "List the kept states of a task's worktree."),
        "restore": Entry("undo:restore", "Write a checkpoint's files to a folder."),
        "prune": Entry("prune:prune", "Remove the worktrees and branches of finished tasks."),
        "clean": Entry("clean:clean", "Remove all worktrees and state; tasks stay."),
    },
}

ALIASES = {"add": "new", "ls": "list", "d": "dashboard", "wait": "poll"}

HIDDEN = {"_pane-ended": Entry("terminal:pane_ended", "A terminal session says that it ended.")}
"""Called by crew's own scripts."""

COMMANDS: Mapping[str, Entry] = {
    name: entry for section in SECTIONS.values() for name, entry in section.items()
}
