"""Which repositories crew works in: `python -m bench.repositories [KIND...]` prints one table.

Each kind is a row: `crew init`, a task to the person's branch and checkout, `crew doctor`, then a
task that needs the content of submodules, and one with a detached HEAD. Git, the sandbox and `crew`
are real; only the agent follows a script. The exit code is 1 if a cell fails.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from bench.repository_kinds import (
    CREW,
    KINDS,
    MAY_BE_REFUSED,
    Broken,
    NotHere,
    Place,
    add_submodule,
    configure,
    sentence,
    set_up,
)

COLUMNS = ("init", "merged", "doctor", "submodule", "detached")
HALF_DONE = ("moved", "moved elsewhere", "copied")
Row = dict[str, str]
"""What each column says: `ok`, `refused (COMMAND)`, or the sentence of the failure."""

_COMMAND = re.compile(r"\bgit (?:fetch|config|commit) .*")
_MOST_COMMANDS = 4
_UNTRACKED = (".crew/", ".tickets/")


class Trial:
    """One repository, and what a person does in it with crew."""

    def __init__(self, place: Place, kind: str) -> None:
        self.place, self.kind = place, kind
        self.checkout = KINDS[kind](place)
        self.branch = "master" if kind == "branch master" else "main"

    def init(self) -> str:
        """Type what `init` asks for, if this kind may be refused, and try again."""
        typed: list[str] = []
        while (done := self.place.crew(self.checkout, "init")).returncode:
            command = _COMMAND.search(done.stderr.rpartition("hint:")[2])
            may_go_on = self.kind in MAY_BE_REFUSED and len(typed) < _MOST_COMMANDS
            if command is None or not may_go_on or command[0] in typed:
                raise Broken(sentence(done))
            typed.append(command[0])
            for one in command[0].split(" && "):
                self.place.typed(_filled_in(one), self.checkout)
        typed += self._mend()
        set_up(self.place, self.checkout)
        words = sorted({" ".join(command.split()[:2]) for command in typed})
        return f"refused ({', '.join(words)})" if typed else "ok"

    def _mend(self) -> list[str]:
        """Type what `init` names as a problem, for all repositories as the hint offers."""
        said = json.loads(self.place.crew(self.checkout, "init", "--json").stdout)
        fixes = [problem["fix"].partition(" (")[0] for problem in said["problems"]]
        if fixes and self.kind not in MAY_BE_REFUSED:
            raise Broken(said["problems"][0]["message"])
        for fix in fixes:
            for one in fix.split(" && "):
                words = _filled_in(one).replace("git config ", "git config --global ")
                self.place.typed(words, self.checkout)
        return fixes

    def merged(self) -> str:
        """A task in the middle of which the repository may have been moved, and a new one."""
        files = {"work/half.txt": "half\n"} if self.kind in HALF_DONE else {}
        if self.kind == "line ends of Windows":
            files["work/cloned.txt"] = "cloned\n"
        if self.kind == "git-lfs":
            files |= {"work/new.bin": "new\n", "work/read.txt": "large\n"}
        self._run("one", {"work/one.txt": "one\n"}, also=files)
        if self.kind == "copied":
            self._check_places()
        return "ok"

    def _check_places(self) -> None:
        """The half-done task of the copy went on in a place of the copy; the original's did not."""
        original = self.place.top / "repo"
        if self.place.typed("git show main:work/where.txt", original).returncode == 0:
            raise Broken("the copy delivered to the original")
        self.place.crew(original, "run", "--drain", "-n", "1")
        for path in (self.checkout, original):
            where = self.place.git(path, "show", "main:work/where.txt")
            if not where.startswith(f"{path}-worktrees/"):
                raise Broken(f"the task of {path.name} worked in {where}")

    def doctor(self) -> str:
        done = self.place.crew(self.checkout, "doctor")
        if done.returncode:
            wrong = [line[2:] for line in done.stdout.splitlines() if line.startswith("✗")]
            raise Broken("; ".join(wrong) or sentence(done))
        return "ok"

    def submodule(self) -> str:
        """Agent and gate have the files of submodules, and of those in them."""
        if self.kind == "sparse checkout":
            self.place.git(self.checkout, "sparse-checkout", "add", "lib")
        self.place.git(self.checkout, "checkout", "-q", self.branch)
        add_submodule(self.place, self.checkout, "lib")
        read = "cat lib/content.txt lib/inner/content.txt > work/seen.txt"
        seen = "content of lib-source\ncontent of lib-inner\n"
        self._run("two", {"work/seen.txt": seen}, first={"run": read})
        if not (self.checkout / "lib" / "content.txt").exists():
            raise Broken("the files of the submodule are no longer in the checkout")
        return "ok"

    def detached(self) -> str:
        """The branch moves, the detached checkout stays where it is."""
        configure(self.place, self.checkout, "complete.command", "true")
        self.place.git(self.checkout, "checkout", "-q", "--detach")
        before = self.place.git(self.checkout, "rev-parse", "HEAD")
        self._run("three", {"work/three.txt": "three\n"})
        if self.place.git(self.checkout, "rev-parse", "HEAD") != before:
            raise Broken("the detached checkout was moved")
        self.place.git(self.checkout, "checkout", "-q", self.branch)
        self._check_files({"work/three.txt": "three\n"})
        return "ok"

    def _run(
        self,
        title: str,
        files: dict[str, str],
        *,
        first: dict[str, str] | None = None,
        also: Mapping[str, str] | None = None,
    ) -> None:
        writes = [{"write": {"path": path, "text": text}} for path, text in files.items()]
        work = [first] if first else [*writes, {"run": _READS_LFS}]
        play(self.place, title, [[*work, {"commit": title}, {"done": True}]])
        made = self.place.crew(self.checkout, "new", "--title", title)
        if made.returncode:
            raise Broken(sentence(made))
        done = self.place.crew(self.checkout, "run", "--drain", "-n", "1")
        if done.returncode:
            raise Broken(self._why(made.stdout.strip()) or sentence(done))
        self._check_files({**files, **(also or {})})

    def _why(self, task: str) -> str:
        """What `crew show` says of a task that was not merged."""
        shown = self.place.crew(self.checkout, "show", task, "--json")
        try:
            found = json.loads(shown.stdout)
        except ValueError:
            return ""
        return str(found.get("reason") or found.get("error") or "")

    def _check_files(self, files: dict[str, str]) -> None:
        """The branch and the checkout have them, and git finds nothing changed there."""
        head = self.place.typed("git symbolic-ref --short -q HEAD", self.checkout).stdout.strip()
        for path, text in files.items():
            landed = self.place.git(self.checkout, "show", f"{self.branch}:{path}")
            if landed != text.rstrip("\n") and not path.endswith(".bin"):
                raise Broken(f"{path} has other content on {self.branch}")
            file = self.checkout / path
            if head == self.branch and (not file.is_file() or file.read_text() != text):
                raise Broken(f"{path} is missing from the checkout, or has other content")
        if self.kind.startswith("sparse") and (self.checkout / "docs").exists():
            raise Broken("files outside of the sparse checkout were written")
        status = self.place.git(self.checkout, "status", "--porcelain")
        changed = [
            one for one in status.splitlines() if not one[3:].strip('"').startswith(_UNTRACKED)
        ]
        if changed:
            raise Broken(f"git finds changes in the checkout: {', '.join(changed)}")


_READS_LFS = (
    "! test -e work/large.bin || { cat work/large.bin > work/read.txt; echo new > work/new.bin; }"
)


def play(place: Place, title: str, steps: list[list[dict]]) -> None:
    """Let the scripted agent play these steps for the task with this title."""
    script = json.loads(place.script.read_text()) if place.script.exists() else {"tasks": {}}
    script["tasks"][title] = {"steps": steps}
    place.script.write_text(json.dumps(script))


def _filled_in(command: str) -> str:
    """As a person types it: with a name of their own where the hint has a word in capitals."""
    return command.replace("NAME", "Ann").replace("ADDRESS", "ann@example.org")


@contextmanager
def made_place() -> Iterator[Place]:
    top = Path(tempfile.mkdtemp(prefix="crew-kinds-"))
    try:
        place = Place(top=top)
        write = {"write": {"path": "work/half.txt", "text": "half\n"}}
        where = {"run": "pwd > work/where.txt"}
        end = [where, {"commit": "where"}, {"done": True}]
        cloned = {"write": {"path": "work/cloned.txt", "text": "cloned\n"}}
        play(place, "cloned", [[cloned, {"commit": "cloned"}, {"done": True}]])
        play(place, "half", [[write, {"commit": "half"}], [{"hang": True}], end])
        yield place
    finally:
        shutil.rmtree(top, ignore_errors=True)


def row_of(kind: str, *, tell: Callable[[str], None] = lambda _: None) -> Row:
    """Every cell of one kind. Where `init` fails, nothing else can be tried."""
    row = dict.fromkeys(COLUMNS, "-")
    with made_place() as place:
        try:
            trial = Trial(place, kind)
        except NotHere as reason:
            return {**row, "init": f"not tried: {reason}"}
        except Broken as reason:
            return {**row, "init": f"FAILED: {reason}"}
        for column in COLUMNS:
            tell(f"{kind}: {column}")
            try:
                row[column] = getattr(trial, column)()
            except Broken as reason:
                row[column] = f"FAILED: {reason}".replace(str(place.top), "")
                if column == "init":
                    return row
    return row


def is_right(cell: str) -> bool:
    return cell == "ok" or cell.startswith(("refused (", "not tried: "))


def print_table(rows: dict[str, Row]) -> None:
    """Long sentences stand below the table, by their numbers."""
    notes: list[str] = []
    lines = [("repository", *COLUMNS)]
    for kind, row in rows.items():
        cells = []
        for column in COLUMNS:
            cell = row[column]
            if len(cell) > 30:
                notes.append(f"{kind}, {column}: {cell}")
                cell = f"{cell.partition(':')[0]} [{len(notes)}]"
            cells.append(cell)
        lines.append((kind, *cells))
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    lines.insert(1, tuple("-" * width for width in widths))
    for line in lines:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        )
    for number, note in enumerate(notes, 1):
        print(textwrap.fill(f"[{number}] {note}", 110, subsequent_indent="    "))
    bad = sum(not is_right(cell) for row in rows.values() for cell in row.values() if cell != "-")
    print(f"\n{len(rows)} kinds, {bad} cells fail", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.repositories", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--user", type=int, metavar="UID", help="as this user; needs root")
    given = parser.parse_args()
    if unknown := sorted(set(given.kinds) - KINDS.keys()):
        parser.error(f"no such kind: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    if given.user and os.getuid() != given.user:
        os.setgroups([])
        os.setgid(given.user)
        os.setuid(given.user)
        if not os.access(CREW, os.X_OK) or not os.access(sys.executable, os.X_OK):
            parser.error(f"user {given.user} may not run {CREW}: install crew where they may")
    rows = {}
    for kind in given.kinds or KINDS:
        rows[kind] = row_of(kind, tell=lambda told: print(told, file=sys.stderr, flush=True))
    print_table(rows)
    return int(
        any(not is_right(cell) for row in rows.values() for cell in row.values() if cell != "-")
    )


if __name__ == "__main__":
    sys.exit(main())
