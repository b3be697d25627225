"""A `git` for the PATH that dies in the middle of its work when a ticket is there for it.

Signals from outside come too late for most gits, which run for milliseconds. This one starts the
real git and kills it after the time that the ticket names. Only a git that really died of the
signal counts: then the process that its caller waits for dies of the same signal.
"""

import shutil
from pathlib import Path

PROGRAM = """\
#!/bin/sh
side=crew
[ -z "$CREW_TASK_ID" ] || side=agent
for ticket in "{aim}/$side"/*; do
  mine="{aim}/taken/$side-${{ticket##*/}}"
  mv "$ticket" "$mine" 2>/dev/null || continue
  exec 9<&0
  "{git}" "$@" <&9 9<&- & git=$!
  sleep "${{ticket##*-}}"
  kill -9 $git 2>/dev/null
  wait $git
  code=$?
  if [ $code = 137 ]; then
    mv "$mine" "{aim}/died/"
    kill -9 $$
  fi
  rm "$mine"
  exit $code
done
exec "{git}" "$@"
"""

SIDES = ("crew", "agent")
DELAYS_S = (0, 0.001, 0.003, 0.01)


class KilledGits:
    """Tickets in a folder; `path` comes first in the PATH of a runner."""

    def __init__(self, folder: Path) -> None:
        self.aim = folder / "aim"
        self.path = folder / "bin"
        self._count = 0
        for made in (*(self.aim / name for name in (*SIDES, "taken", "died")), self.path):
            made.mkdir(parents=True)
        program = self.path / "git"
        program.write_text(PROGRAM.format(aim=self.aim, git=shutil.which("git")))
        program.chmod(0o755)

    def ask(self, side: str, delay_s: float) -> None:
        """Let the next git of this side die."""
        self._count += 1
        (self.aim / side / f"{self._count}-{delay_s}").touch()

    def withdraw(self) -> None:
        for side in SIDES:
            for ticket in (self.aim / side).iterdir():
                ticket.unlink(missing_ok=True)

    def is_over(self) -> bool:
        """Whether every ticket was taken, and what followed has ended."""
        return not any(any((self.aim / name).iterdir()) for name in (*SIDES, "taken"))

    def died(self, side: str) -> int:
        """How many gits of this side were killed so far."""
        return sum(1 for _ in (self.aim / "died").glob(f"{side}-*"))
