"""Small faults put in by a machine: `python -m bench.mutation [--sample N] [--seed S] [AREA...]`.

Of all faults that `mutation_edits` can make in an area, a sample is tried: each is put into a copy
of the tree, and the tests that execute its line run until one fails. A fault that no test finds is
a survivor; `mutation_survivors.toml` explains those that are no gap.
Exits 1 if fewer than 80% of an area are found, or a survivor is not explained.
"""

import argparse
import sys
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from multiprocessing.pool import Pool
from pathlib import Path

from bench.mutation_edits import Edit, edits_of, modules, sample
from bench.mutation_map import PROJECT, TestMap, digest, in_batches
from bench.mutation_trial import Outcome, copies, record, try_edit
from bench.tables import say, table, title

SOURCE = PROJECT / "src" / "crew"
EXPLAINED = Path(__file__).with_name("mutation_survivors.toml")
KEPT = PROJECT / ".mutation"
AIM = 0.8
SAMPLE, SEED = 120, 13
IN_OTHER_PROCESSES = {"test_git_crashes.py", "test_landing_stress.py"}
"""Long suites whose programs run elsewhere, where the lines that they execute are not seen."""


@dataclass(frozen=True, slots=True)
class Area:
    """Folders below `src/crew`, and their tests. For one fault so many run at a time."""

    folders: tuple[str, ...]
    tests: tuple[str, ...]
    batch: int


AREAS = {
    "domain": Area(
        ("domain",),
        (
            *("domain", "simulation/test_histories.py", "config"),
            *("agents/test_output.py", "agents/test_templates.py"),
        ),
        batch=300,
    ),
    "git": Area(("git",), ("git",), batch=120),
    "sandbox": Area(
        ("system/sandbox", "system/host_proxy", "runner/sandbox"),
        (
            *("system/test_sandbox_forms.py", "boundary/test_sandbox.py"),
            *("boundary/test_confinement.py", "boundary/test_listed_hosts.py"),
            "system/test_seal.py",
            *("system/test_host_proxy.py", "system/test_forwarder.py"),
            "runner/test_project_trust.py",
        ),
        batch=120,
    ),
}


def main(given: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.mutation", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=", ".join(AREAS))
    parser.add_argument("--sample", type=int, default=SAMPLE, help=f"default: {SAMPLE}")
    parser.add_argument("--seed", type=int, default=SEED, help=f"default: {SEED}")
    asked = parser.parse_args(given)
    if unknown := sorted(set(asked.areas) - AREAS.keys()):
        parser.error(f"no such area: {', '.join(unknown)}; there are {', '.join(AREAS)}")
    results = {}
    for name in asked.areas or AREAS:
        chosen = sample(all_edits(AREAS[name]), count=asked.sample, seed=asked.seed)
        title(f"{name}: {len(chosen)} faults, seed {asked.seed}")
        results[name] = tried(AREAS[name], chosen)
    return report(results, explanations())


def all_edits(area: Area) -> list[Edit]:
    files = (file for folder in area.folders for file in modules(SOURCE / folder))
    return [edit for file in files for edit in edits_of(file, below=SOURCE)]


def explanations() -> dict[tuple[str, str, str], str]:
    """Why a survivor is no gap, by its file, its line and its edit."""
    entries = tomllib.loads(EXPLAINED.read_text())["survivor"]
    return {(one["file"], one["line"], one["edit"]): one["why"] for one in entries}


def tried(area: Area, edits: list[Edit]) -> list[Outcome]:
    """Put each fault in and run the tests that execute its line, a few faults at once."""
    outcomes = []
    with copies() as pool:
        known = load_map(area, pool)
        sizes = known.sizes()
        say(f"{len(sizes)} tests")
        tests = [
            in_batches(known.tests_for(edit), sizes, module=edit.file, size=area.batch)
            for edit in edits
        ]
        for outcome in pool.imap_unordered(try_edit, zip(edits, tests, strict=True)):
            outcomes.append(outcome)
            say(f"{len(outcomes)}/{len(edits)} {named(outcome)}")
    return sorted(outcomes, key=lambda one: (one.edit.file, one.edit.start))


def named(outcome: Outcome) -> str:
    edit = outcome.edit
    end = f"found by {outcome.found_by}" if outcome.found_by else "SURVIVED"
    unreached = "" if outcome.is_reached else " (no test executes this line or imports the module)"
    return f"{edit.file}:{edit.line}: {edit.shown}: {end}{unreached}"


def report(results: dict[str, list[Outcome]], explained: dict[tuple[str, str, str], str]) -> int:
    rows, unexplained = [], 0
    for name, outcomes in results.items():
        survivors = [one for one in outcomes if not one.found_by]
        unknown = [one for one in survivors if one.edit.key not in explained]
        title(f"{name}: {len(survivors)} survivors, {len(unknown)} not explained")
        for one in survivors:
            say(f"{named(one)}\n    in: {one.edit.text}")
            say(f"    why: {explained.get(one.edit.key, 'NOT EXPLAINED')}")
        unexplained += len(unknown)
        found = len(outcomes) - len(survivors)
        histories = sum("simulation" in one.found_by for one in outcomes)
        share = found / len(outcomes)
        rows.append((name, len(outcomes), found, histories, f"{share:.0%}", len(survivors)))
    title("Mutation testing")
    head = ("area", "faults", "found", "of these by histories", "share", "survivors")
    table(head, [tuple(map(str, row)) for row in rows])
    is_short = any(row[2] < AIM * row[1] for row in rows)
    return 1 if unexplained or is_short else 0


def load_map(area: Area, pool: Pool) -> TestMap:
    """The map of an area. It is kept as long as no module and no test changes."""
    places = [PROJECT / "tests" / name for name in area.tests]
    kept = KEPT / f"{digest([*(SOURCE / folder for folder in area.folders), *places])}.json"
    if not kept.exists():
        known = TestMap()
        files = [file for one in places for file in ([one] if one.is_file() else tests_in(one))]
        for part in pool.imap_unordered(record, [str(file.relative_to(PROJECT)) for file in files]):
            known.add(part)
        known.write(kept)
    return TestMap.read(kept)


def tests_in(folder: Path) -> Iterable[Path]:
    return [
        file for file in sorted(folder.rglob("test_*.py")) if file.name not in IN_OTHER_PROCESSES
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
