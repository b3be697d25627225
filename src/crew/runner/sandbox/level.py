"""One line about the sandbox on this machine: what it confines, and what it does not."""

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.frozen import frozen
from crew.domain.upkeep.findings import Finding
from crew.runner.sandbox.confinement import limits_of
from crew.system.processes.process import load_wrapper
from crew.system.processes.start_command import Wrapper
from crew.system.sandbox.seal import KEYS, SOCKETS
from crew.workplace import Workplace

_CONFINED = "confines steps, reviews, gates, setup commands and terminals"
_FIX = "install bubblewrap and allow user namespaces"


@frozen
class Level:
    """What is confined here, in words, and how to confine more."""

    words: str
    fix: str = ""


def load_level(workplace: Workplace) -> Level:
    """The level of this machine and configuration. Raises if the configuration asks for more."""
    mode = workplace.settings.sandbox.mode
    wrapper = load_wrapper(mode, limits_of(workplace))  # type: ignore[arg-type]
    if mode == "off":
        return Level(
            words="the sandbox is off: agents and gates can read and change whatever you can",
            fix='[sandbox] mode = "auto"',
        )
    if wrapper == Wrapper():
        return Level(
            words="no sandbox works here: agents and gates can read and change whatever you can",
            fix=_FIX,
        )
    tool = "bubblewrap" if wrapper.bwrap else "sandbox-exec"
    ends = (*_open_ends(workplace), *_not_sealed(workplace, wrapper))
    return Level(words=f"{tool} {_CONFINED}; not confined: {', '.join(ends)}")


def sandbox_finding(workplace: Workplace) -> Finding:
    """The level for `crew doctor`; a configuration that cannot be obeyed is wrong."""
    try:
        level = load_level(workplace)
    except CrewError as error:
        return Finding(check="sandbox", message=error.message, fix=error.hint, is_wrong=True)
    return Finding(check="sandbox", message=level.words, fix=level.fix)


def _open_ends(workplace: Workplace) -> tuple[str, ...]:
    """What a program in the sandbox still reaches."""
    settings = workplace.settings
    return (
        *_open_network(workplace),
        "the login of its own CLI",
        *(("the repository's .git (linked worktrees)",) if _is_linked(workplace) else ()),
        *(("what [sandbox] allow_write names",) if settings.sandbox.allow_write else ()),
    )


def _not_sealed(workplace: Workplace, wrapper: Wrapper) -> tuple[str, ...]:
    """What an older kernel, or a bubblewrap with the rights of root, leaves open."""
    if not wrapper.bwrap:
        return ()
    # Abstract sockets belong to a network, and without the person's there are none of theirs.
    ends = (KEYS, SOCKETS) if workplace.settings.sandbox.network is True else (KEYS,)
    return tuple(end for end in ends if end not in wrapper.closed)


def _open_network(workplace: Workplace) -> tuple[str, ...]:
    match workplace.settings.sandbox.network:
        case True:
            return ("the network",)
        case False | ():
            return ()
        case _:
            return ("the hosts that [sandbox] network names",)


def _is_linked(workplace: Workplace) -> bool:
    return workplace.worktree_kind == "linked"
