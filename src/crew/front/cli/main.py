"""The entry point: passes the command line to its command, and starts `crew mcp` directly."""

import gc
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

COLLECT_AFTER = 50_000
"""Python collects garbage after 700 new objects; a start makes 50 times as many, all in use."""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit; the wrapper script for agents expects no return."""
    code = run(list(sys.argv[1:] if argv is None else argv))
    gc.freeze()  # Python's last garbage collection would take a seventh of a short command
    sys.exit(code)


def run(args: list[str]) -> int:
    gc.set_threshold(COLLECT_AFTER)
    open_closed_streams()
    if args == ["mcp"]:
        # Started with every step of an agent: parsing the command line would be half its cost.
        from crew.front.mcp.stdio_shim import serve  # noqa: PLC0415

        return serve()
    from crew.front.cli.root import run_command  # noqa: PLC0415 - loads click

    return run_command(args)


def open_closed_streams() -> None:
    """Open closed standard streams (`>&-`) as /dev/null; no later file may take their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)  # noqa: FBT003 - its own signature
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8", closefd=False))
