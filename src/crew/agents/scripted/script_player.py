"""A small program that follows a script: an agent that costs nothing and does real work.

It is started as `python -I -S script_player.py` in a worktree. Its environment selects the steps:
CREW_SCRIPT (a JSON or TOML file), CREW_TASK_ID and CREW_TASK_TITLE (the part of the script),
CREW_REASON and CREW_ROLE (the list of steps), CREW_STATE_DIR (the folder of its progress).
In a channel it uses CREW_CHANNEL and CREW_AGENT: `members` has a list of turns for each member, by
its name or as `channel/name`.
It prints one JSON object on each line. A killed step is played again, so actions can be repeated.
Only `hang` counts as played when it begins, since it always ends by a kill.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` would double the time to start
    from collections.abc import Callable
    from typing import Any

    Action = Callable[[Any], None]
    Ending = Callable[[Any], int]

_FLOOD_LINE = b"x" * 1023 + b"\n"
_FLOOD_BLOCK = 1_000
_OWN_LOCK = re.compile(r"Unable to create '([^']+/(?:index|HEAD|refs/heads/[^']+)\.lock)'")
_CONFLICT = re.compile(rb"^<{7} .*?\n(.*?)^={7}\n(.*?)^>{7} .*?(?:\n|\Z)", re.DOTALL | re.MULTILINE)


def main() -> int:
    env = os.environ
    script = _load(env.get("CREW_SCRIPT", ""))
    channel, task = env.get("CREW_CHANNEL", ""), env.get("CREW_TASK_ID", "")
    if channel:
        task, steps_name = f"{channel}/{env.get('CREW_AGENT', '')}", "turns"
        part = {steps_name: _turns(script, task)}
    else:
        part = _part(script, task, env.get("CREW_TASK_TITLE", ""))
        steps_name = _list_name(part, env.get("CREW_REASON", ""), env.get("CREW_ROLE", ""))
    progress = Progress(env.get("CREW_STATE_DIR", "."), task)
    steps = part.get(steps_name, [])
    number = progress.played(steps_name)
    actions = steps[number] if number < len(steps) else [{"say": _last_word(env)}]
    for kind, argument in [pair for action in actions for pair in action.items()]:
        if kind in ENDINGS:
            progress.record(steps_name, number + 1)
            return ENDINGS[kind](argument)
        _act(kind, argument)
    progress.record(steps_name, number + 1)
    _print(type="end")
    return 0


class Progress:
    """How many steps of each list a task has played, in one small file for each task."""

    def __init__(self, folder: str, task: str) -> None:
        name = "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):x}" for c in task)
        self._path = os.path.join(folder, f"script-{name or 'task'}.json")  # noqa: PTH118

    def played(self, steps_name: str) -> int:
        return self._counts().get(steps_name, 0)

    def record(self, steps_name: str, count: int) -> None:
        text = json.dumps({**self._counts(), steps_name: count})
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
        fresh = f"{self._path}.new"
        _write_file(fresh, text.encode())
        os.chmod(fresh, 0o600)  # noqa: PTH101
        os.replace(fresh, self._path)  # noqa: PTH105

    def _counts(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads(_read_file(self._path) or b"{}")
        return counts


def _load(path: str) -> dict[str, Any]:
    if not path:
        return {}
    raw = _read_file(path)
    if raw is None:
        raise ScriptError(f"the script {path} cannot be read")
    if path.endswith(".toml"):
        import tomllib  # noqa: PLC0415 - most scripts are JSON

        return tomllib.loads(raw.decode())
    script: dict[str, Any] = json.loads(raw)
    return script


class ScriptError(Exception):
    """The script asks for something that cannot be played."""


def _part(script: dict[str, Any], task: str, title: str) -> dict[str, Any]:
    tasks = script.get("tasks", {})
    part: dict[str, Any] = tasks.get(task) or tasks.get(title) or script.get("default") or {}
    return part


def _list_name(part: dict[str, Any], reason: str, role: str) -> str:
    """The list for the reason of this step, else the one for the role, else `steps`.

    A reviewer without its own list never plays the worker's steps: it passes.
    """
    if f"on_{reason}" in part:
        return f"on_{reason}"
    return f"as_{role}" if f"as_{role}" in part or role == "reviewer" else "steps"


def _turns(script: dict[str, Any], member: str) -> list[Any]:
    members = script.get("members", {})
    turns: list[Any] = members.get(member) or members.get(member.partition("/")[2]) or []
    return turns


def _last_word(env: os._Environ[str]) -> str:
    if env.get("CREW_CHANNEL"):
        return "TURN_COMPLETE"
    return "PASS" if env.get("CREW_ROLE") == "reviewer" else env.get("CREW_DONE_WORD", "DONE")


def _print(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def _act(kind: str, argument: Any) -> None:
    if kind not in ACTIONS:
        known = ", ".join([*ACTIONS, *ENDINGS])
        raise ScriptError(f"there is no action {kind!r}; known: {known}")
    ACTIONS[kind](argument)


def _say(text: str) -> None:
    _print(type="text", text=text)


def _done(_: bool) -> None:  # noqa: FBT001 - the script says {"done": true}
    _say(os.environ.get("CREW_DONE_WORD", "DONE"))


def _use(used: dict[str, Any]) -> None:
    _print(type="usage", **used)


def _write(file: dict[str, str]) -> None:
    _print(type="tool", name="write", text=file["path"])
    _make_parents(file["path"])
    _write_file(file["path"], file["text"].encode())


def _append(file: dict[str, str]) -> None:
    """Add the text at the end, unless the file has it already from an earlier try."""
    _print(type="tool", name="append", text=file["path"])
    before = _read_file(file["path"]) or b""
    if file["text"].encode() not in before:
        _make_parents(file["path"])
        _write_file(file["path"], before + file["text"].encode())


def _commit(message: str) -> None:
    _print(type="tool", name="commit", text=message)
    _git("add", "--all")
    if _git("diff", "--cached", "--quiet", may_fail=True)[0] or _is_merging():
        _git("commit", "--quiet", "--message", message)


def _run(script: str) -> None:
    """Run a shell script. As with any agent, the step continues if it fails."""
    _print(type="tool", name="run", text=script)
    import subprocess  # noqa: PLC0415 - only some scripts need it

    code = subprocess.run(["sh", "-c", script], stdout=sys.stderr, check=False).returncode
    if code:
        _print(type="tool", name="run", text=f"exit code {code}")


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _daemon(seconds: float) -> None:
    """Leave a hidden process: another session, another parent, and it ignores SIGTERM."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(seconds)
        os._exit(0)
    os.wait()


def _flood(size: int) -> None:
    sys.stdout.flush()
    count = size // len(_FLOOD_LINE) + 1
    for _ in range(count // _FLOOD_BLOCK):
        sys.stdout.buffer.write(_FLOOD_LINE * _FLOOD_BLOCK)
    sys.stdout.buffer.write(_FLOOD_LINE * (count % _FLOOD_BLOCK))
    sys.stdout.buffer.flush()


def _resolve(how: str) -> None:
    """Merge the conflicting commit and keep both sides of every conflict."""
    if how != "both":
        raise ScriptError(f'resolve knows "both", not {how!r}')
    other = os.environ.get("CREW_MERGE_COMMIT", "")
    _print(type="tool", name="resolve", text=other)
    merge = ("-c", "merge.conflictStyle=merge", "merge", "--no-edit", other)
    if not _is_merging() and _git(*merge, may_fail=True)[0] and not _is_merging():
        _git("reset", "--quiet", "--hard")  # a killed merge left files that are in its way
        _git(*merge, may_fail=True)
    for path in set(_git("diff", "--name-only", "--diff-filter=U", "-z")[1].split("\0")) - {""}:
        content = _read_file(path)
        if content is not None:
            _write_file(path, _CONFLICT.sub(rb"\1\2", content))
    _git("add", "--all")
    if _is_merging():
        _git("commit", "--quiet", "--no-edit")
    _git("merge-base", "--is-ancestor", other, "HEAD")


def _is_merging() -> bool:
    return _git("rev-parse", "--quiet", "--verify", "MERGE_HEAD", may_fail=True)[0] == 0


def _fail(error: dict[str, Any]) -> int:
    if "reset_in_s" in error:
        error = {**error, "reset_at": time.time() + error["reset_in_s"]}
    _print(type="error", **{"kind": "crashed", "message": "as the script asks", **error})
    return 1


def _exit(code: int) -> int:
    return code


def _hang(_: bool) -> int:  # noqa: FBT001 - the script says {"hang": true}
    while True:
        time.sleep(3600)


def _git(*arguments: str, may_fail: bool = False) -> tuple[int, str]:
    import subprocess  # noqa: PLC0415 - only some scripts need it

    ended = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    stale = _OWN_LOCK.search(ended.stderr)
    if stale:  # left by an earlier, killed try of this step, the only user of this worktree
        os.unlink(stale[1])  # noqa: PTH108
        ended = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    if ended.returncode and not may_fail:
        raise ScriptError(f"git {arguments[0]}: {ended.stderr.strip()}")
    return ended.returncode, ended.stdout


def _make_parents(path: str) -> None:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)  # noqa: PTH103, PTH120


def _read_file(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return None


def _write_file(path: str, content: bytes) -> None:
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)


ACTIONS: dict[str, Action] = {
    "say": _say,
    "done": _done,
    "use": _use,
    "write": _write,
    "append": _append,
    "commit": _commit,
    "run": _run,
    "sleep_s": _sleep,
    "daemon": _daemon,
    "flood": _flood,
    "resolve": _resolve,
}
ENDINGS: dict[str, Ending] = {"fail": _fail, "exit": _exit, "hang": _hang}


if __name__ == "__main__":
    try:
        code = main()
    except Exception as error:  # noqa: BLE001 - a script can be wrong in any way
        _print(type="error", kind="crashed", message=f"{type(error).__name__}: {error}")
        code = 1
    sys.stdout.flush()
    os._exit(code)
