"""Replays histories: `python -m simulation SEED [COUNT] [--rewrites]`.

With `--rewrites` a person rewrites main in each of them.
"""

import sys
import time

from simulation.history import run_history
from simulation.virtual_loop import VirtualLoop

rewrites = "--rewrites" in sys.argv
first, *more = (int(word) for word in sys.argv[1:] if word != "--rewrites")
count = more[0] if more else 1
loop = VirtualLoop()
began = time.process_time()
lives = events = 0
for seed in range(first, first + count):
    try:
        history = run_history(seed, loop, rewrites=rewrites)
    except BaseException:
        print(f"seed {seed} failed; replay: python -m simulation {seed}", file=sys.stderr)
        raise
    lives += history.lives
    events += history.ledger.count
spent = time.process_time() - began
print(f"{count} histories, {lives} lives, {events} facts, {count / spent:.0f} histories/s")
loop.close()
