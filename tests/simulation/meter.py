"""The meter: one hash of the fact stream for each seed, so that a redesign proves it changed none.

`python -m simulation.meter` in the folder `tests` compares every seed with `meter.txt`;
`--write` records the hashes anew. A commit that does so names the fix and the seeds it changed.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from crew.domain.kernel.fact import Fact
from simulation.history import History, run_history

SEEDS = range(1, 2001)
RECORD = Path(__file__).with_name("meter.txt")

PROSE = frozenset(
    [
        "close_reason",
        "context",
        "definition",
        "error",
        "last_error",
        "merge_notes",
        "notes",
        "question",
        "reason",
        "remedy",
        "signal_notes",
        "waiting",
    ]
)
"""Fields whose text is for people: only whether there is any counts, its words may change."""

FORMER: Mapping[str, str] = {}
"""Kinds, triggers and fields that were renamed, each with the name the record was made with."""

LATER = frozenset(["unjudged", "merge_kept", "merge_refused", "merge_accepted", "placed"])
"""Fields that were added since the record was made: a fact that has no others does not count."""


def hash_of(history: History) -> str:
    history.ledger.load()
    stream = hashlib.sha256()
    for fact in history.ledger.facts:
        if fact.changes and LATER.issuperset(fact.changes):
            continue
        stream.update(json.dumps(measured_fact(fact), default=str).encode())
    return stream.hexdigest()[:12]


def measured_fact(fact: Fact) -> list[object]:
    return [
        _former(fact.kind),
        fact.subject,
        _former(fact.trigger),
        round(fact.at, 6),
        fact.source,
        fact.target,
        _values(fact.changes),
        _values(fact.extra),
    ]


def _values(values: Mapping[str, object]) -> list[tuple[str, object]]:
    named = {_former(name): bool(v) if name in PROSE else v for name, v in values.items()}
    return sorted((name, value) for name, value in named.items() if name not in LATER)


def _former(name: str) -> str:
    return FORMER.get(name, name)


def recorded() -> dict[int, str]:
    lines = RECORD.read_text().splitlines()
    return {int(seed): value for seed, value in (line.split() for line in lines)}


def measured(seeds: Iterable[int]) -> dict[int, str]:
    with ProcessPoolExecutor() as pool:
        return dict(pool.map(_hash_of_seed, seeds, chunksize=20))


def _hash_of_seed(seed: int) -> tuple[int, str]:
    return seed, hash_of(run_history(seed))


def main() -> int:
    now = measured(SEEDS)
    if "--write" in sys.argv:
        RECORD.write_text("".join(f"{seed} {value}\n" for seed, value in now.items()))
    before = recorded()
    changed = [seed for seed, value in now.items() if before.get(seed) != value]
    print(f"{len(now) - len(changed)} of {len(now)} hashes as recorded")
    if changed:
        print("changed:", *changed)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
