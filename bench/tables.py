"""Figures with their aims, and tables on the terminal."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured number; without an aim it is only reported."""

    name: str
    measured: float
    unit: str = ""
    aim: float | None = None
    at_least: bool = False

    @property
    def ratio(self) -> float | None:
        """Measured by aim: above 1 is good for an aim "at least", below 1 for all others."""
        return self.measured / self.aim if self.aim else None

    @property
    def verdict(self) -> str:
        if self.ratio is None:
            return ""
        met = self.ratio >= 1 if self.at_least else self.ratio <= 1
        return "met" if met else "MISSED"

    def row(self) -> tuple[str, ...]:
        sign = ">=" if self.at_least else "<="
        aim = "" if self.aim is None else f"{sign} {number(self.aim)} {self.unit}"
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        return (self.name, aim.strip(), f"{number(self.measured)} {self.unit}", ratio, self.verdict)


def number(value: float) -> str:
    """Three digits that mean something."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def title(text: str) -> None:
    print(f"\n{text}\n{'=' * len(text)}", flush=True)


def say(text: str) -> None:
    print(text, flush=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """The first column is words, all others stand to the right."""
    lines = [tuple(head), *(tuple(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for place, line in enumerate(lines):
        first, *others = (cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        print("  ".join((line[0].ljust(len(first)), *others)).rstrip())
        if place == 0:
            print("  ".join("-" * width for width in widths))
    print(flush=True)


def summary(figures: Iterable[Figure]) -> None:
    title("Summary")
    head = ("figure", "aim", "measured", "ratio", "")
    table(head, [figure.row() for figure in figures])
