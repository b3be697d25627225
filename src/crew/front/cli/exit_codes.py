"""Turns an error into its message, its stream and its exit code."""

import errno
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from crew.domain.kernel.errors import CrewError, Interrupted, UsageError
from crew.front.cli.call import Call
from crew.front.cli.output import give_up_stdout, print_json_line

INTERRUPTED = Interrupted.exit_code
PIPE_CLOSED = 141
"""The exit code of a program that the kernel ends because its output is not read."""

_OS_HINTS = {
    errno.ENOSPC: "free some disk space and try again; nothing is half written",
    errno.EDQUOT: "free some disk space and try again; nothing is half written",
    errno.EACCES: "check the owner and the permissions of that path",
    errno.EPERM: "check the owner and the permissions of that path",
    errno.EROFS: "the file system is read-only: crew must be able to write there",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "check the path",
    errno.EISDIR: "check the path",
}


def ended(error: BaseException, call: Call, args: Sequence[str]) -> int:
    """Print an error and return its exit code."""
    as_json = call.json or "--json" in args[: args.index("--") if "--" in args else len(args)]
    try:
        return _told(error, call, as_json=as_json)
    except BrokenPipeError:
        give_up_stdout()
        return PIPE_CLOSED
    except OSError as unwritable:
        give_up_stdout()
        return _told(unwritable, call, as_json=False)


def _told(error: BaseException, call: Call, *, as_json: bool) -> int:
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case BrokenPipeError():
            raise error
        case click.exceptions.NoArgsIsHelpError() if not as_json and error.ctx:
            print(error.ctx.get_help(), file=sys.stderr)
            _count_questions(error.ctx, call)
            if hint := error.ctx.meta.get("crew.view_hint"):
                print(f"\nhint: {hint}", file=sys.stderr)
            return 2
    told = _as_crew_error(error, call)
    _tell(told, as_json=as_json)
    return told.exit_code


def _as_crew_error(error: BaseException, call: Call) -> CrewError:
    match error:
        case CrewError():
            return error
        case KeyboardInterrupt() | click.Abort():
            return Interrupted("interrupted", hint="")
        case click.ClickException():
            message, _, hint = _usage(error).partition("\n")
            return UsageError(message, hint=hint)
        case OSError():
            return CrewError(_os_words(error), hint=_os_hint(error))
        case _:
            return _bug(error, call)


def _count_questions(ctx: click.Context, call: Call) -> None:
    """Print how many questions are open, below the help of a bare `crew`."""
    from crew.front.cli.watching.open_questions import count_line  # noqa: PLC0415 - for `crew` alone

    if ctx.parent is None and (words := count_line(call.directory)):
        print(f"\n{words}", file=sys.stderr)


def _tell(error: CrewError, *, as_json: bool) -> None:
    if as_json:
        # On one line: it may be the last of many, as with `events -f`.
        print_json_line(error_document(error))
    elif not isinstance(error, Interrupted):
        sys.stdout.flush()
        print(f"crew: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)


def error_document(error: CrewError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}


def _usage(error: click.ClickException) -> str:
    """The message of a usage error and, on a second line, its hint."""
    words = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        words = "missing command"
    elif isinstance(error, click.MissingParameter) and error.param is not None:
        # Click's own words spread the choices over many lines; the metavar has them already.
        words = f"missing {error.param.param_type_name} {error.param.get_error_hint(error.ctx)}"
    if "\n" in words:
        return words
    where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "crew"
    message = words.rstrip(".")
    return f"{message[:1].lower()}{message[1:]}\n`{where} --help` shows its usage"


def _os_words(error: OSError) -> str:
    words = error.strerror or str(error)
    return f"{os.fsdecode(error.filename)}: {words}" if error.filename else words


def _os_hint(error: OSError) -> str:
    return _OS_HINTS.get(error.errno or 0, "`crew doctor` checks what crew needs")


def _bug(error: BaseException, call: Call) -> CrewError:
    import traceback  # noqa: PLC0415 - slow to import, and hopefully never needed

    words = f"{type(error).__name__}: {error}"
    trace = "".join(traceback.format_exception(error))
    if call.verbose:
        print(trace, file=sys.stderr)
    log = _keep_trace(trace, call.directory)
    where = f"the details are in {log}" if log else "`crew -v …` shows the details"
    return CrewError(f"this is a fault in crew: {words}", hint=where, code="bug")


def _keep_trace(trace: str, directory: Path) -> Path | None:
    """Append a traceback to the runner's log; returns that file, or None if there is none."""
    from crew.find_crew import find_folder  # noqa: PLC0415 - rarely needed
    from crew.system.private_files import append_private  # noqa: PLC0415 - rarely needed

    folder = find_folder(directory)
    if folder is None:
        return None
    log = folder / "logs" / "crew.log"
    try:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        append_private(log, f"{at} {trace}\n".encode(errors="surrogateescape"))
    except OSError:
        return None
    return log
