"""Whether a merge keeps what both of its sides meant, judged file by file and line by line.

A side means the lines that it added to the common base and the lines that it removed from it. Lines
are compared without their white space. `docs/decisions/016-a-merge-keeps-what-both-sides-meant.md`
has the rule and its reasons.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import pairwise

from crew.domain.kernel.frozen import frozen
from crew.domain.kernel.quotation import LONGEST_NOTES, headline, quoted_start

MOST_LINES = 100_000
"""Of the four versions together. Longer files are judged by counting their lines, wherever they
stand and without looking for rewritten ones."""

MOST_CELLS = 20_000
"""Of the table that aligns two parts without a line that is unique in both."""

REWRITES = 3
"""How many lines a new line may replace."""

MOST_COMPARED = 200
"""How many new lines at one place are compared with the lines that they may replace."""

MOST_FILES = 12
MOST_SHOWN = 8
LONGEST_SHOWN = 160

_BINARY_START = 8_000
_WORD = re.compile(rb"[\w\x80-\xff]+")


class Side(StrEnum):
    """The two sides of a merge: the task's own work, and what landed."""

    TASK = "task"
    LANDED = "landed"


class Loss(StrEnum):
    """What is wrong with lines of a side: gone, there again, in another order, or unreadable."""

    MISSING = "missing"
    BACK = "back"
    ORDER = "order"
    BINARY = "binary"


@frozen
class LostSide:
    """What the result of a merge lacks of one side in one file.

    `lines` are the first of `count` lines; a loss without lines concerns the file as a whole.
    `owners` are the tasks whose landed work the file has.
    """

    path: str
    side: Side
    loss: Loss
    lines: tuple[str, ...] = ()
    count: int = 0
    owners: tuple[str, ...] = ()


@frozen
class Versions:
    """One file of a merge; None where it does not exist."""

    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    result: bytes | None


def words_of(lost: tuple[LostSide, ...]) -> str:
    """The files that lost something, each with the lines and whose they are, as a quotation."""
    by_path: dict[str, list[LostSide]] = {}
    for one in lost:
        by_path.setdefault(one.path, []).append(one)
    told = [
        line
        for path in list(by_path)[:MOST_FILES]
        for line in (headline(path), *(line for one in by_path[path] for line in _told(one)))
    ]
    left = len(by_path) - MOST_FILES
    more = [f"(and {left} more file{'s' if left > 1 else ''})"] if left > 0 else []
    return quoted_start("\n".join([*told, *more]), most=LONGEST_NOTES)


def _told(lost: LostSide) -> list[str]:
    whose = _whose(lost)
    if not lost.lines:
        return [f"    {_WITHOUT_LINES[lost.loss].format(whose=whose)}"]
    lines = "1 line" if lost.count == 1 else f"{lost.count} lines"
    verb = "is" if lost.count == 1 else "are"
    more = lost.count - len(lost.lines)
    return [
        f"    {_WITH_LINES[lost.loss].format(lines=lines, whose=whose, verb=verb)}",
        *(f"        {headline(line)}" for line in lost.lines),
        *([f"        … and {more} more"] if more > 0 else ()),
    ]


def _whose(lost: LostSide) -> str:
    if lost.side == Side.TASK:
        return "this task"
    if not lost.owners:
        return "what landed"
    tasks = "task" if len(lost.owners) == 1 else "tasks"
    return f"{tasks} {' and '.join(lost.owners)}, which landed,"


_WITH_LINES = {
    Loss.MISSING: "{lines} of {whose} {verb} missing:",
    Loss.BACK: "{lines} that {whose} removed {verb} there again:",
    Loss.ORDER: "{lines} of {whose} {verb} in another order:",
}
_WITHOUT_LINES = {
    Loss.MISSING: "the file that {whose} added is missing",
    Loss.BACK: "the file that {whose} removed is there again",
    Loss.BINARY: "it is not text, and not as {whose} left it",
}


def lost_sides(files: Mapping[str, Versions]) -> tuple[LostSide, ...]:
    """What the result lacks of the side `ours`, the task's, and of `theirs`, which landed.

    A line that another of these files has gained is moved and not lost.
    """
    totals = _Totals(files)
    found = []
    for path, file in files.items():
        for side in _changed_by(file):
            found += [
                LostSide(
                    path=path,
                    side=side,
                    loss=loss,
                    lines=tuple(map(_shown, lines[:MOST_SHOWN])),
                    count=len(lines),
                )
                for loss, lines in _losses(file, side, totals)
            ]
    return tuple(found)


def _changed_by(file: Versions) -> tuple[Side, ...]:
    """The sides to ask after.

    A task may rework a file that nobody else changed; only all of its changes must not be undone.
    """
    if file.ours == file.base:
        return () if file.theirs == file.base else (Side.LANDED,)
    if file.theirs == file.base:
        return (Side.TASK,) if file.result == file.base else ()
    return (Side.TASK, Side.LANDED)


def _losses(file: Versions, side: Side, totals: "_Totals") -> list[tuple[Loss, list[bytes]]]:
    mine, other = _in_view(file, side)
    if file.result == mine:
        return []
    if any(_is_binary(one) for one in (file.base, mine, other, file.result)):
        is_chosen = file.result == other and other != file.base
        return [] if is_chosen else [(Loss.BINARY, [])]
    seen = _Seen(file, side)
    if not (seen.base or seen.mine):  # an empty file came or went
        is_missing = mine is not None
        return [] if is_missing == (file.result is not None) else [(_GONE[is_missing], [])]
    found = [(Loss.MISSING, seen.missing(totals)), (Loss.BACK, seen.back())]
    if not any(lines for _, lines in found):
        found = [(Loss.ORDER, seen.disordered())]
    return [(loss, lines) for loss, lines in found if lines]


_GONE = {True: Loss.MISSING, False: Loss.BACK}


def _in_view(file: Versions, side: Side) -> tuple[bytes | None, bytes | None]:
    """The version of this side, then that of the other."""
    return (file.ours, file.theirs) if side is Side.TASK else (file.theirs, file.ours)


def _is_binary(content: bytes | None) -> bool:
    return content is not None and b"\0" in content[:_BINARY_START]


def _lines(content: bytes | None) -> list[bytes]:
    """The lines that are not empty, each with single spaces only."""
    return [b" ".join(words) for line in (content or b"").splitlines() if (words := line.split())]


def _shown(line: bytes) -> str:
    text = line.decode(errors="replace")
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"


_Counts = tuple[Counter[bytes], Counter[bytes], Counter[bytes], Counter[bytes]]
"""How often each line is in the base, in the side's own version, in the other's, in the result."""


class _Totals:
    """How often each line is in all files together, counted when it is first asked for."""

    def __init__(self, files: Mapping[str, Versions]) -> None:
        self._files = files
        self._counts: dict[str, Counter[bytes]] = {}

    def spare(self, line: bytes, side: Side, here: "_Counts") -> int:
        """How often the other files have the line beyond what this side needs there."""
        mine, other = ("ours", "theirs") if side is Side.TASK else ("theirs", "ours")
        names = ("base", mine, other, "result")
        base, own, others, result = (
            self._of(name)[line] - counts[line] for name, counts in zip(names, here, strict=True)
        )
        return result - (own - max(0, base - others))

    def _of(self, name: str) -> Counter[bytes]:
        if name not in self._counts:
            contents = (getattr(file, name) for file in self._files.values())
            self._counts[name] = Counter(
                line for one in contents if not _is_binary(one) for line in _lines(one)
            )
        return self._counts[name]


class _Seen:
    """A text file as one side sees it: the base, its own version, the other's and the result."""

    def __init__(self, file: Versions, side: Side) -> None:
        mine, other = _in_view(file, side)
        self.side = side
        self.base, self.mine = _lines(file.base), _lines(mine)
        self.other, self.result = _lines(other), _lines(file.result)
        texts = (self.base, self.mine, self.other, self.result)
        self.counts: _Counts = tuple(map(Counter, texts))  # type: ignore[assignment] # four of them
        self.is_long = sum(map(len, texts)) > MOST_LINES
        base, own = self.counts[0], self.counts[1]
        changed = (own - base) + (base - own)
        self.weighs_marks = not any(map(_WORD.search, changed))
        """Whether brackets and the like count, because the side changed nothing else."""
        self.from_base = _Alignment(*((), ()) if self.is_long else (self.base, self.mine))
        self.others = _Alignment(*((), ()) if self.is_long else (self.base, self.other))

    def _counts_for(self, line: bytes) -> bool:
        return self.weighs_marks or _WORD.search(line) is not None

    def missing(self, totals: _Totals) -> list[bytes]:
        """The lines that this side added and the result neither has nor rewrites."""
        base, own, other, result = self.counts
        short = Counter[bytes]()
        for line in own - base:
            needed = own[line] - max(0, base[line] - other[line])
            less = needed + self._added_elsewhere(line) - result[line]
            if less <= 0 or not self._counts_for(line):
                continue
            if totals.spare(line, self.side, self.counts) < less:
                short[line] = min(less, own[line] - base[line])
        if not short or self.is_long:
            return [line for line in self.mine if _taken(short, line)]
        return self._not_rewritten(short)

    def _added_elsewhere(self, line: bytes) -> int:
        """How often the other side added the same line at another place, so that both stay."""
        base, _, other, _ = self.counts
        if other[line] <= base[line] or self.is_long:
            return 0
        mine, theirs = self.from_base.adding(line), self.others.adding(line)
        if any(self._is_one_place(one, two) for one in mine for two in theirs):
            return 0
        return other[line] - base[line] if mine and theirs else 0

    def _is_one_place(self, mine: "_Hunk", theirs: "_Hunk") -> bool:
        """Whether git may see two insertions as one: no line that both keep is between them."""
        first, last = sorted((mine, theirs), key=lambda hunk: hunk.start)
        between = self.base[first.end : last.start]
        inserted = {*self.mine[mine.from_ : mine.to], *self.other[theirs.from_ : theirs.to]}
        return all(line in inserted for line in between)

    def _not_rewritten(self, short: Counter[bytes]) -> list[bytes]:
        known = set().union(*self.counts[:3])
        lost: list[bytes] = []
        kept = _Alignment(self.mine, self.result)
        rest = Counter(short)
        for hunk in kept.hunks:
            gone = [n for n in range(hunk.start, hunk.end) if _taken(rest, self.mine[n])]
            there = (line for line in self.result[hunk.from_ : hunk.to] if line not in known)
            new = [line for line in there if _WORD.search(line)]
            contested = {n for n in gone if self._is_contested(n)}
            if len(contested) <= REWRITES * len(new):
                gone = [n for n in gone if n not in contested]
            lost += _not_similar([self.mine[n] for n in gone], new)
        return lost + [line for line in self.mine if _taken(rest, line)]

    def _is_contested(self, place: int) -> bool:
        """Whether the other side changed the lines that this line replaced."""
        hunk = self.from_base.hunk_to(place)
        if hunk is None or hunk.start == hunk.end:
            return False
        return any(one.end > one.start for one in self.others.touching(hunk))

    def back(self) -> list[bytes]:
        """The lines that this side removed and the result has again.

        Not those that the other side needs for a change of its own amid them.
        """
        base, own, other, result = self.counts
        again = Counter[bytes]()
        for line in base - own:
            allowed = own[line] + max(0, other[line] - base[line])
            if result[line] > allowed and self._counts_for(line):
                again[line] = min(result[line] - allowed, base[line] - own[line])
        if not again or self.is_long:
            return [line for line in self.base if _taken(again, line)]
        found = []
        for hunk in self.from_base.hunks:
            lines = [line for line in self.base[hunk.start : hunk.end] if _taken(again, line)]
            if self._is_undone(hunk, lines):
                found += lines
        return found

    def _is_undone(self, hunk: "_Hunk", again: list[bytes]) -> bool:
        """Whether these lines of a removed part are there because it was brought back.

        Lines that the base has more than once may be there for other reasons.
        """
        removed = self.base[hunk.start : hunk.end]
        is_telling = any(self.counts[0][line] == 1 for line in again)
        if not again or not (is_telling or len(again) == len(removed)):
            return False
        amid = [
            line for one in self.others.touching(hunk) for line in self.other[one.from_ : one.to]
        ]
        return not amid or any(line not in self.counts[3] for line in amid)

    def disordered(self) -> list[bytes]:
        """The lines that this side added one after the other and the result has in another order.

        Also the lines that it moved, if the result has them where they were.
        """
        if self.is_long:
            return []
        once = {line: n for n, line in enumerate(self.result) if self.counts[3][line] == 1}
        for hunk in self.from_base.hunks:
            added = self.mine[hunk.from_ : hunk.to]
            placed = [line for line in added if line in once and self.counts[1][line] == 1]
            wrong = [b for a, b in pairwise(placed) if once[a] > once[b]]
            if wrong:
                return wrong
        return self._moved_back(set(once))

    def _moved_back(self, once: set[bytes]) -> list[bytes]:
        common = {one for one in once if all(counts[one] == 1 for counts in self.counts)}
        orders = [
            [line for line in lines if line in common]
            for lines in (self.base, self.mine, self.other, self.result)
        ]
        before, mine, other, after = orders
        if mine == before or other != before or after != before:
            return []
        return [line for line, old in zip(mine, before, strict=True) if line != old]


def _taken(counter: Counter[bytes], line: bytes) -> bool:
    """Take the line out of the counter; False if it is not in there."""
    if counter[line] <= 0:
        return False
    counter[line] -= 1
    return True


def _not_similar(gone: list[bytes], new: list[bytes]) -> list[bytes]:
    """The lines that have not half of their words in one of the new lines in their place."""
    left = [(Counter(_WORD.findall(line)), [REWRITES]) for line in new[:MOST_COMPARED]]
    return [line for line in gone if not _is_rewritten(Counter(_WORD.findall(line)), left)]


def _is_rewritten(words: Counter[bytes], left: list[tuple[Counter[bytes], list[int]]]) -> bool:
    for other, room in left:
        if room[0] and words and 2 * (words & other).total() >= words.total():
            room[0] -= 1
            return True
    return False


@frozen
class _Hunk:
    """Lines `start` to `end` of the first text stand as lines `from_` to `to` in the second."""

    start: int
    end: int
    from_: int
    to: int


class _Alignment:
    """Where two texts differ: the hunks between the lines that they have in common."""

    def __init__(self, first: "Lines", second: "Lines") -> None:
        self.hunks: list[_Hunk] = []
        at, place = 0, 0
        ends = (len(first), len(second))
        for one, two in (*_common(first, second, (0, 0), ends), ends):
            if one > at or two > place:
                self.hunks.append(_Hunk(start=at, end=one, from_=place, to=two))
            at, place = one + 1, two + 1
        self._second = second
        self._adding: dict[bytes, list[_Hunk]] = {}

    def hunk_to(self, place: int) -> _Hunk | None:
        """The hunk that has this line of the second text."""
        found = bisect_left(self.hunks, place + 1, key=lambda hunk: hunk.to)
        hunk = self.hunks[found] if found < len(self.hunks) else None
        return hunk if hunk is not None and hunk.from_ <= place else None

    def touching(self, part: _Hunk) -> Iterator[_Hunk]:
        """The hunks that change this part of the first text, or add something amid it."""
        first = bisect_left(self.hunks, part.start + 1, key=lambda one: one.end)
        for n in range(first, len(self.hunks)):
            if self.hunks[n].start >= part.end:
                return
            yield self.hunks[n]

    def adding(self, line: bytes) -> list[_Hunk]:
        """The first hunks that add this line."""
        if not self._adding:
            for hunk in self.hunks:
                for one in dict.fromkeys(self._second[hunk.from_ : hunk.to]):
                    self._adding.setdefault(one, []).append(hunk)
        return self._adding.get(line, [])[:MOST_SHOWN]


Lines = list[bytes] | tuple[()]


def _common(
    first: Lines, second: Lines, begin: tuple[int, int], end: tuple[int, int]
) -> list[tuple[int, int]]:
    """Pairs of equal lines in order: around lines that are unique in both, then in what is left."""
    pairs: list[tuple[int, int]] = []
    parts = [(begin, end)]
    while parts:
        (a, b), (c, d) = parts.pop()
        while a < c and b < d and first[a] == second[b]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        while a < c and b < d and first[c - 1] == second[d - 1]:
            c, d = c - 1, d - 1
            pairs.append((c, d))
        if a == c or b == d:
            continue
        anchors = _anchors(first, second, (a, b), (c, d))
        if anchors:
            pairs += anchors
            starts = [(a, b), *((one + 1, two + 1) for one, two in anchors)]
            parts += zip(starts, [*anchors, (c, d)], strict=True)
        elif (c - a) * (d - b) <= MOST_CELLS:
            pairs += _longest_common(first, second, (a, b), (c, d))
    return sorted(pairs)


def _anchors(
    first: Lines, second: Lines, begin: tuple[int, int], end: tuple[int, int]
) -> list[tuple[int, int]]:
    """The longest row of lines that are unique in both parts and in the same order."""
    ours, theirs = first[begin[0] : end[0]], second[begin[1] : end[1]]
    counts, others = Counter(ours), Counter(theirs)
    places = {line: n for n, line in enumerate(theirs) if others[line] == 1}
    pairs = [
        (n, places[line]) for n, line in enumerate(ours) if counts[line] == 1 and line in places
    ]
    tops: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for n, (_, place) in enumerate(pairs):
        pile = bisect_left(tops, place)
        before.append(ends[pile - 1] if pile else -1)
        tops[pile : pile + 1], ends[pile : pile + 1] = [place], [n]
    row, n = [], ends[-1] if ends else -1
    while n >= 0:
        row.append((begin[0] + pairs[n][0], begin[1] + pairs[n][1]))
        n = before[n]
    return row[::-1]


def _longest_common(
    first: Lines, second: Lines, begin: tuple[int, int], end: tuple[int, int]
) -> list[tuple[int, int]]:
    (a, b), (c, d) = begin, end
    best = [[0] * (d - b + 1) for _ in range(c - a + 1)]
    for n in range(c - a - 1, -1, -1):
        row, below = best[n], best[n + 1]
        for m in range(d - b - 1, -1, -1):
            is_same = first[a + n] == second[b + m]
            row[m] = below[m + 1] + 1 if is_same else max(below[m], row[m + 1])
    pairs, n, m = [], 0, 0
    while n < c - a and m < d - b:
        if first[a + n] == second[b + m]:
            pairs.append((a + n, b + m))
            n, m = n + 1, m + 1
        elif best[n + 1][m] >= best[n][m + 1]:
            n += 1
        else:
            m += 1
    return pairs
