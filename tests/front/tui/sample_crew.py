"""A crew in a shop for lamps, the same on every machine: files, commits and facts with fixed times.

It has one of everything that the view shows. The snapshots and the pictures of the docs are of it.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from crew.domain.kernel.fact import Fact
from crew.domain.rows.task import TaskState
from crew.domain.world import World
from crew.store.fact_log import record
from crew.store.kept_values import keep_doing
from crew.tasks.task_source import NewComment, NewTask
from crew.workplace import Workplace, make_workplace

NOON = 1_794_398_400.0
"""2026-11-11 12:00:00 UTC, which is now."""

RUNNER = {"pid": 4242, "started": "2026-11-11T11:00:00Z", "role": "runner"}

CODE = {
    "shop/prices.py": "RATE = 19\n\n\ndef price(cents: int) -> str:\n"
    '    return f"{cents / 100:.2f}"\n',
    "shop/cart.py": "class Cart:\n    def __init__(self):\n        self.lamps = []\n\n"
    "    def add(self, lamp):\n        self.lamps.append(lamp)\n",
    "tests/test_cart.py": "from shop.cart import Cart\n\n\ndef test_empty():\n"
    "    assert Cart().lamps == []\n",
}
CHANGED = {
    "shop/prices.py": "RATE = 19\nMEMBER_RATE = 10\n\n\ndef price(cents: int) -> str:\n"
    '    """The price in euros."""\n'
    '    return f"{cents / 100:.2f}"\n\n\n'
    "def discounted(cents: int, member: bool) -> int:\n"
    "    return cents - cents * MEMBER_RATE // 100 if member else cents\n",
    "tests/test_prices.py": "from shop.prices import discounted\n\n\ndef test_members_pay_less():\n"
    "    assert discounted(1000, True) == 900\n",
}

TASKS = (
    NewTask(title="Prices in cents", labels=("shop",)),
    NewTask(title="The cart keeps the same lamp twice", labels=("bug",)),
    NewTask(
        title="Discounts for members",
        labels=("shop", "urgent"),
        priority=0,
        body="Members pay 10% less.\n\n- `discounted()` in `shop/prices.py`\n- a test for it\n",
    ),
    NewTask(
        title="Show prices with tax", labels=("shop",), body="As the law of each country says."
    ),
    NewTask(title="Receipts by mail", labels=("mail",)),
    NewTask(title="Import the old catalogue"),
    NewTask(title="Search by name", labels=("search",)),
    NewTask(title="A faster start page", labels=("speed",)),
    NewTask(title="Translate the shop: 日本語 and العربية", deps=("4",)),
    NewTask(title="Gift cards", labels=("quest",), body="People want to give lamps to friends."),
    NewTask(title="Gift cards have a value", labels=("quest-10",), parent="10"),
    NewTask(title="Pay with a gift card", labels=("quest-10",), parent="10", deps=("11",)),
    NewTask(title="Ship with Docker"),
    NewTask(title="Orders of the last year", priority=3),
    NewTask(title="[red]Bold[/red] \x1b[31mtitles\x1b[0m stay text", labels=("hostile",)),
)

STATES = {
    "1": TaskState.MERGED,
    "2": TaskState.MERGED,
    "3": TaskState.IN_PROGRESS,
    "4": TaskState.IN_PROGRESS,
    "5": TaskState.IN_PROGRESS,
    "6": TaskState.ERROR,
    "7": TaskState.DONE,
    "8": TaskState.DONE,
    "10": TaskState.IN_PROGRESS,
    "11": TaskState.IN_PROGRESS,
    "13": TaskState.CLOSED,
}

WORDS = {
    "A": "$ pytest -q tests/test_prices.py",
    "C": "reads shop/mail.py",
    "E": "writes shop/gift_cards.py",
}

LOG = (
    "=== 3.1: step 1/1 ===\n"
    "I will look at the prices first.\n"
    '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"Read",'
    '"input":{"file_path":"shop/prices.py"}}]}}\n'
    "The rate is a constant. \x1b[32mGood.\x1b[0m\n"
    "=== 3.1: step 2/1 ===\n"
    '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t2","name":"Bash",'
    '"input":{"command":"pytest -q tests/test_prices.py"}}]}}\n'
    "1 failed: discounted(1000, True) is 1000\n"
    "I forgot the case of members.\n"
)


def make_sample(root: Path) -> Workplace:
    """The repository, the tasks and the facts."""
    _commit(root, CODE, "The shop sells lamps")
    workplace = make_workplace(root)
    _add_tasks(workplace)
    _branch(root, "crew-3", CHANGED, "Members pay less")
    workplace.keep_source()
    record(workplace.db, World(), list(_story()))
    for agent, words in WORDS.items():
        keep_doing(workplace.db, agent, words, at=NOON)
    log = workplace.task_log("3")
    log.parent.mkdir(exist_ok=True)
    log.write_text(LOG)
    workplace.close_database()
    return workplace


@contextmanager
def sample_time() -> Iterator[None]:
    """It is noon, and the runner is up, for everything that the view looks at."""
    with (
        patch("time.time", lambda: NOON),
        patch("crew.front.tui.live.crew_reader.find_runner", lambda _lock: RUNNER),
    ):
        yield


def _git(root: Path, *args: str) -> None:
    dates = {f"GIT_{who}_DATE": f"{int(NOON) - 7200} +0000" for who in ("AUTHOR", "COMMITTER")}
    person = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(
        ["git", *person, *args], cwd=root, env={**os.environ, **dates}, check=True, stdout=-3
    )


def _commit(root: Path, files: dict[str, str], message: str) -> None:
    root.mkdir(parents=True)
    _git(root, "init", "-q", "-b", "main")
    _write(root, files)
    _git(root, "add", "--all")
    _git(root, "commit", "-q", "-m", message)


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def _branch(root: Path, branch: str, files: dict[str, str], message: str) -> None:
    """A branch with one commit, in a worktree of its own as crew makes them."""
    tree = root.parent / f"{root.name}-worktrees" / branch.removeprefix("crew-")
    _git(root, "worktree", "add", "-q", "-b", branch, str(tree))
    _write(tree, files)
    _git(tree, "add", "--all")
    _git(tree, "commit", "-q", "-m", message)


def _add_tasks(workplace: Workplace) -> None:
    source = workplace.source
    for number, new in enumerate(TASKS):
        source.add(new, at=NOON - 90_000 + 60 * number)
    for task, state in STATES.items():
        source.set_status(task, state, at=NOON - 3_000)
    words = "Please also test an amount of 0."
    source.comment("3", NewComment(author="Ada", text=words, at=NOON - 900, kind="comment"))
    (workplace.folder / "tasks/default/16.md").write_bytes(b"---\ntitle: [not closed\n---\n\xff")


def _story() -> Iterator[Fact]:
    for number, new in enumerate(TASKS, start=1):
        yield _seen(str(number), new)
    for name, kind in zip(
        "ABCDE", ("claude", "codex", "gemini", "claude", "opencode"), strict=True
    ):
        yield _row("agent", name, "spawned", -3_600, agent_kind=kind, started_at=NOON - 3_600)
    for task in ("1", "2"):
        yield from _merged(task, "A", -3_500 + 600 * int(task))
    for task in ("7", "8"):
        yield from _done(task, "C", -1_600 + 60 * int(task))
    yield from _begun("3", "A", "claude", -1_500, steps=6, tokens=84_000, cost=1.21)
    yield _gate("3", -700)
    yield from _begun("4", "B", "codex", -1_200, steps=2, tokens=21_000, cost=0.34)
    yield from _asked()
    yield from _begun("5", "C", "gemini", -600, steps=3, tokens=40_000, cost=None)
    yield from _begun("6", "D", "claude", -900, steps=5, tokens=12_000, cost=0.2)
    yield from _stuck()
    yield from _begun("11", "E", "opencode", -240, steps=1, tokens=9_000, cost=0.07)
    yield from _queue()
    yield from _channel()


def _seen(task: str, new: NewTask) -> Fact:
    state = STATES.get(task, TaskState.TODO)
    is_started = state not in {TaskState.TODO, TaskState.CLOSED}
    first = TaskState.TODO if is_started and task != "10" else state
    return _row(
        "task",
        task,
        "seen",
        -3_700,
        title=new.title,
        state=str(first),
        written=str(state),
        deps=new.deps,
        priority=new.priority,
        target="main",
        created_at=NOON - 90_000,
    )


def _row(kind: str, subject: str, trigger: str, after: float, **changes: object) -> Fact:
    return Fact(kind=kind, subject=subject, trigger=trigger, at=NOON + after, changes=changes)


def _move(
    kind: str, subject: str, trigger: str, way: tuple[str, str], after: float, **changes: object
) -> Fact:
    source, target = way
    return Fact(
        kind=kind,
        subject=subject,
        trigger=trigger,
        at=NOON + after,
        source=source,
        target=target,
        changes={**changes, "state": target},
    )


def _begun(
    task: str, agent: str, kind: str, after: float, *, steps: int, tokens: int, cost: float | None
) -> Iterator[Fact]:
    """A run from its start to the steps that it has made so far."""
    run, branch = f"{task}.1", f"crew-{task}"
    used = {"input_tokens": tokens, "output_tokens": tokens // 10, "cost_usd": cost}
    ours = {"task": task, "agent": agent, "agent_kind": kind, "started_at": NOON + after}
    yield _row("run", run, "created", after, **ours)
    yield _move(
        "task", task, "started", ("todo", "in_progress"), after, run=run, branch=branch, run_count=1
    )
    yield _move("agent", agent, "assigned", ("idle", "ready"), after, task=task, run=run)
    yield _move("run", run, "prepared", ("init", "working"), after + 1)
    yield _move("agent", agent, "step_started", ("ready", "working"), after + 2, pid=5000)
    yield _row("run", run, "stepped", after + 200, steps=steps, step=steps, **used)
    yield _row("agent", agent, "stepped", after + 200, **used)


def _ended(task: str, agent: str, after: float) -> Iterator[Fact]:
    run = f"{task}.1"
    yield _move("agent", agent, "done", ("working", "done"), after)
    yield _move("run", run, "done", ("working", "reviewing"), after)
    yield _move("run", run, "approved", ("reviewing", "complete"), after + 20)
    yield _move(
        "task",
        task,
        "completed",
        ("in_progress", "done"),
        after + 20,
        queued_at=NOON + after + 20,
        head=task * 8,
        gate="pytest -q",
    )
    yield _move("agent", agent, "released", ("done", "idle"), after + 20, task=None, run=None)


def _merged(task: str, agent: str, after: float) -> Iterator[Fact]:
    yield from _begun(task, agent, "claude", after, steps=4, tokens=30_000, cost=0.42)
    yield from _ended(task, agent, after + 300)
    yield _move("task", task, "delivered", ("done", "merged"), after + 340, landed_commit=task * 8)


def _done(task: str, agent: str, after: float) -> Iterator[Fact]:
    yield from _begun(task, agent, "gemini", after, steps=3, tokens=18_000, cost=0.11)
    yield from _ended(task, agent, after + 250)


def _gate(task: str, after: float) -> Fact:
    notes = "1 failed: discounted(1000, True) is 1000"
    return _row("run", f"{task}.1", "red_gate", after, ask="red_gate", notes=notes, round=2)


def _asked() -> Iterator[Fact]:
    yield _row(
        "question",
        "q1",
        "asked",
        -300,
        task="4",
        run="4.1",
        role="worker",
        question="Round half a cent up, or to the even one?",
        context="`price()` is used for the tax of 7% and 19%.",
        choices=("up", "to even"),
        asked_at=NOON - 300,
    )
    yield _row("run", "4.1", "waits", -300, question="q1")
    yield _move("agent", "B", "parked", ("working", "idle"), -299, task=None, run=None)


def _stuck() -> Iterator[Fact]:
    why = "claude: not logged in (claude auth login)"
    yield _move("agent", "D", "errors", ("working", "stuck"), -200, last_error=why, error_count=5)
    yield _move("run", "6.1", "failed", ("working", "failed"), -200, error=why)
    yield _move("task", "6", "failed", ("in_progress", "error"), -200)


def _queue() -> Iterator[Fact]:
    chain = [["7", "7" * 8, "a7" * 4], ["8", "8" * 8, "b8" * 4]]
    results = [["a7" * 4, True, 1, ""]]
    base = {"integration": "2" * 8, "base": "2" * 8, "target_seen": "2" * 8}
    yield _row("line", "main", "assembled", -60, **base, chain=chain, results=results)


def _channel() -> Iterator[Fact]:
    talk = (
        ("ada", "person", "Do we round before or after the discount?"),
        ("claude", "agent", "After it: the discount is of the shown price."),
        ("codex", "agent", "I agree, and the tax comes last."),
    )
    yield _row(
        "channel",
        "prices",
        "opened",
        -500,
        topic="How do we round?",
        members=["claude", "codex"],
        queue=["codex"],
        holder="claude",
        sequence=len(talk),
        opened_at=NOON - 500,
    )
    for name, state in (("claude", "active"), ("codex", "queued")):
        yield _row(
            "member",
            f"prices/{name}",
            "joined",
            -500,
            channel="prices",
            name=name,
            way="driven",
            agent_kind=name,
            state=state,
            cost_usd=0.05,
        )
    for number, (sender, author, text) in enumerate(talk, start=1):
        yield _row(
            "post",
            f"prices/{number:09}",
            "posted",
            -500 + 30 * number,
            channel="prices",
            sequence=number,
            sender=sender,
            author=author,
            text=text,
            at=NOON - 500 + 30 * number,
        )
