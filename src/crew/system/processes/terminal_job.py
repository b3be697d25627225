"""Runs a command as the foreground job of a terminal: `python terminal_job.py COMMAND...`.

Ctrl-C then reaches the command alone, and not the sandbox around it, which would die of it. A
shell's own jobs do not work there, because the sandbox hides the process group to return to.
Ctrl-Z does nothing, since the terminal has no shell to return to.
"""

import os
import signal
import sys

TERMINAL = 0


def main() -> int:
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # else the first step stops us
    child = os.fork()
    if child == 0:
        _become(sys.argv[1:])
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        os.killpg(child, signal.SIGCONT)


def _become(argv: list[str]) -> None:
    os.setpgid(0, 0)
    if os.isatty(TERMINAL):
        os.tcsetpgrp(TERMINAL, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(argv[0], argv)  # noqa: S606 - the command of the terminal


if __name__ == "__main__":
    sys.exit(main())
