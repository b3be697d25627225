"""Makes Ctrl-C reach a foreground command even if its parent program ignores SIGINT.

A shell script, `make` or an editor can pass on an ignored SIGINT, which Python keeps. A command in
the foreground of the terminal that it reads from takes SIGINT back. A command in the background
keeps ignoring it, as the shell intends: a script gives its background jobs an empty input, job
control puts them into a process group of their own, and `nohup` takes the terminal away.
"""

import os
import signal
import sys


def take_back_ctrl_c() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and _is_in_foreground():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_in_foreground() -> bool:
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):  # not a terminal, not the controlling one, or closed
        return False
