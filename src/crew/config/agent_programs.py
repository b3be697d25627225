"""Finds the program that each configured agent needs, and whether it is installed."""

import importlib.util
import os
import re
import shutil

from crew.config.model import AgentSettings, AgentsSettings

_PLAIN_WORD = re.compile(r"[\w./+@%:-]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OF_THE_SHELL = frozenset(
    (
        *(".", ":", "[", "alias", "case", "cd", "command", "eval", "exec", "exit", "export"),
        *("false", "for", "if", "printf", "read", "readonly", "return", "set", "shift", "source"),
        *("test", "time", "trap", "true", "type", "ulimit", "umask", "unset", "until", "wait"),
        "while",
    )
)


def program_of(agent: AgentSettings) -> str | None:
    """The program that is started first; None if crew ships it or only a shell can tell."""
    if agent.adapter == "scripted":
        return None
    if agent.command or not agent.command_template:
        return agent.command
    return program_in(agent.command_template)


def program_in(template: str) -> str | None:
    """The program of a command line, after the variables that it sets; None if unsure."""
    if "||" in template:  # one program may stand in for another
        return None
    words = template.split()
    first = next((word for word in words if not _ASSIGNMENT.match(word)), "")
    is_plain = _PLAIN_WORD.fullmatch(first) is not None and first not in _OF_THE_SHELL
    return first if is_plain and first != "crew" else None


def missing_program(agent: AgentSettings) -> str | None:
    """The agent's program if it is not on the PATH. A relative path is not checked.

    An agent that uses the Agent Client Protocol also needs crew's extra `acp`.
    """
    if agent.adapter == "acp" and importlib.util.find_spec("acp") is None:
        return "git-crew[acp]"
    program = program_of(agent)
    if program is None or ("/" in program and not program.startswith("/")):
        return None
    return None if _find(program, agent) else program


def _find(program: str, agent: AgentSettings) -> str | None:
    path = agent.env.get("PATH") or os.environ.get("PATH", os.defpath)
    return shutil.which(program, path=path)


def program_path(agent: AgentSettings) -> str | None:
    program = program_of(agent)
    return _find(program, agent) if program else None


def installed_programs(agents: AgentsSettings) -> frozenset[str]:
    """The paths of the programs that are installed."""
    return frozenset(filter(None, map(program_path, agents.by_name.values())))


def missing_programs(agents: AgentsSettings) -> dict[str, str]:
    """The missing programs by the agent kinds that need them."""
    known: dict[tuple[object, ...], str | None] = {}
    found = {}
    for name, agent in agents.by_name.items():
        key = (agent.adapter == "acp", program_of(agent), agent.env.get("PATH"))
        if key not in known:
            known[key] = missing_program(agent)
        if program := known[key]:
            found[name] = program
    return found
