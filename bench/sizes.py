"""How big the benchmarks are: a default of about ten minutes for all, and a small one to try."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    tasks: int = 200
    listed_tasks: int = 10_000
    working_agents: int = 50
    flood_bytes: int = 1_000_000_000
    histories: int = 300
    queue_hours: int = 500
    repeats: int = 15


FULL = Size()
QUICK = Size(
    tasks=40,
    listed_tasks=1_000,
    working_agents=10,
    flood_bytes=100_000_000,
    histories=50,
    queue_hours=100,
    repeats=5,
)
