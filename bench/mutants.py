"""Faults put into the core on purpose, which the tests must find: `python -m bench.mutants`.

Every fault is one edit in a copy of the tree. The simulator plays histories against the copy first,
then the tests of `domain` and `simulation` run until the first one fails. The tree as it is must
pass first, or nothing would be proven. Exits 1 if a fault lives.
"""

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.mutation_trial import copy_tree
from bench.tables import say, table, title

HISTORIES = 200
NOBODY = "NOBODY"


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old` stands exactly once in the file below `src/crew`."""

    name: str
    file: str
    old: str
    new: str


MUTANTS = (
    Mutant(
        "a task is merged before its target branch has it",
        "runner/doers/merge_doers.py",
        "if await ctx.outside.contains(ancestor=task.landed_commit, descendant=commit)",
        "",
    ),
    Mutant(
        "a task starts before what it depends on",
        "domain/tasks/readiness.py",
        "and not open_deps(world, task)",
        "",
    ),
    Mutant(
        "a red gate is taken for a green one",
        "domain/runs/complaints.py",
        "(evidence.gate_passed is False, Ask.RED_GATE",
        "(False, Ask.RED_GATE",
    ),
    Mutant(
        "landing does not compare before it swaps",
        "runner/doers/merge_doers.py",
        "to=commit, expected=queue.integration)",
        "to=commit, expected=tips.integration)",
    ),
    Mutant(
        "no checkpoint before a kill",
        "runner/doers/run_doers.py",
        'await kept(ctx, task, f"kill of agent {agent.id}")',
        "pass",
    ),
    Mutant(
        "a step begins behind the lock of a dead one",
        "runner/doers/step_doers.py",
        "await ctx.outside.clear_locks(task)",
        "pass",
    ),
    Mutant(
        "one task is given to two agents",
        "domain/agents/agent_plan.py",
        "return [*back, *ready]",
        "return [*back, *ready, *ready]",
    ),
    Mutant(
        "a session is not resumed",
        "runner/doers/step_doers.py",
        "resume = run.session_used or run.stepping",
        "resume = False",
    ),
    Mutant(
        "the queue blames a task and keeps it",
        "domain/merging/merge_plan.py",
        "return [\n        worse,\n        *returned(",
        "return [worse]\n    return [\n        *returned(",
    ),
    Mutant(
        "what is delivered is delivered again",
        "domain/merging/merge_plan.py",
        "if is_current or queue.upstream:",
        "if queue.upstream:",
    ),
    Mutant(
        "errors are not counted",
        "domain/kernel/error_row.py",
        "return ErrorRow(count=before + 1, limit=limit)",
        "return ErrorRow(count=before, limit=limit)",
    ),
    Mutant(
        "a killed task gets no rest",
        "domain/agents/agent_plan.py",
        "if clock.has_come(task.not_before, CommandKind.RUN)]",
        "]",
    ),
    Mutant(
        "a quest takes more slots than it has",
        "domain/quests/position.py",
        "return busy < world.quests[base.quest].slots",
        "return True",
    ),
    Mutant(
        "a role that asked another one is not resumed",
        "domain/quests/role_requests.py",
        "continues, position = position.resume, draft.world.positions[position.asker]",
        "continues, position = False, draft.world.positions[position.asker]",
    ),
    Mutant(
        "nobody counts how often a role is called",
        "domain/quests/role_entry.py",
        "times = base.visited(role_counter(role)) + 1",
        "times = base.visited(role_counter(role))",
    ),
    Mutant(
        "a new plan drops what is finished",
        "domain/quests/quest_plan.py",
        "kept = finished_steps(world, quest)",
        "kept: list[str] = []",
    ),
    Mutant(
        "a queue that a person brought together is not built anew",
        "runner/doers/merge_doers.py",
        "*merge_outcomes.target_moved(world.queues[target], tips, overtaken=0, at=ctx.now()),",
        "",
    ),
    Mutant(
        "a quest goes on before its steps are delivered",
        "domain/quests/position.py",
        "return any(task is None or task.state not in FINISHED for task in tasks)",
        "return any(task is None or not task.is_over for task in tasks)",
    ),
)


def main(wanted: list[str]) -> int:
    title(f"{len(MUTANTS)} faults, {HISTORIES} histories and the tests of the domain against each")
    rows = []
    if (found := found_by(None))[0] != NOBODY:
        raise RuntimeError(f"found without any fault: {' '.join(found)}")
    for mutant in MUTANTS:
        if not wanted or any(word in mutant.name for word in wanted):
            rows.append((mutant.name, *found_by(mutant)))
            say(f"{mutant.name}: {' '.join(rows[-1][1:])}")
    table(("fault", "found by", ""), rows)
    return 1 if any(row[1] == NOBODY for row in rows) else 0


def found_by(mutant: Mutant | None) -> tuple[str, str]:
    """Who found the fault, if one is put in, and what was said."""
    with tempfile.TemporaryDirectory(prefix="crew-mutant-") as place:
        copy = Path(place)
        copy_tree(copy)
        if mutant is not None:
            _put_in(copy, mutant)
        simulated = _run(copy, "-m", "simulation", "1", str(HISTORIES))
        if simulated.returncode:
            return "the simulator", simulated.stderr.strip().splitlines()[-1][:100]
        tests = (
            "tests/domain",
            "tests/simulation",
            "-m",
            "not faults",
            "--deselect",
            "tests/simulation/test_histories.py",
        )
        tested = _run(copy, "-m", "pytest", *tests, "-x", "-q", "-p", "no:cacheprovider")
        if tested.returncode:
            failed = [line for line in tested.stdout.splitlines() if line.startswith("FAILED")]
            return "a test", (failed or [tested.stdout[-100:]])[0].removeprefix("FAILED ")[:100]
    return NOBODY, ""


def _put_in(place: Path, mutant: Mutant) -> None:
    file = place / "src" / "crew" / mutant.file
    text = file.read_text()
    if text.count(mutant.old) != 1:
        raise RuntimeError(f"{mutant.file} has changed: {mutant.old!r} is not there once")
    file.write_text(text.replace(mutant.old, mutant.new))


def _run(place: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    """In the copy, with the copy's `crew`."""
    folder = place / "tests" if args[1] == "simulation" else place
    env = {**os.environ, "PYTHONPATH": f"{place / 'src'}:{place / 'tests'}"}
    return subprocess.run(
        [sys.executable, *args], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
