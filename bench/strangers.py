"""How well the tree explains itself: what readers found who saw file names and nothing else.

`strangers.json` holds 20 questions ("in which file would you look for …?"), the right files before
and after the rooms were built, and the first guesses of three readers each time.
"""

import json
from pathlib import Path

from bench.sizes import Size
from bench.tables import Figure, say, table, title

RECORD = Path(__file__).with_name("strangers.json")


def measure(_size: Size) -> list[Figure]:
    record = json.loads(RECORD.read_text())
    title("Strangers: the right file at the first guess, of 20 questions")
    rows = [
        [when, reader, f"{_right(record['questions'], guesses, when)} of {len(guesses)}"]
        for when in ("before", "after")
        for reader, guesses in record[when].items()
    ]
    table(["tree", "reader", "right"], rows)
    for question in record["questions"]:
        missed = [
            guesses[str(question["n"])]
            for guesses in record["after"].values()
            if guesses[str(question["n"])] not in question["after"]
        ]
        if missed:
            say(f"missed: {question['question']} ({', '.join(missed)})")
    return []


def _right(questions: list[dict], guesses: dict[str, str], when: str) -> int:
    return sum(guesses[str(one["n"])] in one[when] for one in questions)
