"""Tasks with random durations and dependencies: the same ones in every run."""

import random

SEED = 1


def random_plan(
    count: int, *, name: str, shortest_s: float, longest_s: float
) -> tuple[dict[str, float], dict[str, tuple[str, ...]]]:
    """Half of them wait for nobody, the others for one or two of those before them."""
    rng = random.Random(SEED)
    durations_s: dict[str, float] = {}
    deps: dict[str, tuple[str, ...]] = {}
    for number in range(count):
        before = list(durations_s)
        wanted = min(len(before), rng.choice([0, 0, 1, 2]))
        deps[f"{name}{number}"] = tuple(rng.sample(before, wanted))
        durations_s[f"{name}{number}"] = round(rng.uniform(shortest_s, longest_s), 2)
    return durations_s, deps
