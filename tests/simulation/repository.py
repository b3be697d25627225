"""A repository in memory: commits, refs, worktrees and checkpoints, enough to merge and to lose."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Commit:
    """`files` maps a file to its lines; `above` is a bit mask of all commits it contains."""

    id: str
    number: int
    files: dict[str, frozenset[str]]
    above: int
    parents: tuple[str, ...] = ()
    salt: str = ""

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


@dataclass(slots=True)
class Worktree:
    """`dirty` are lines added and not committed."""

    head: str
    dirty: dict[str, frozenset[str]] = field(default_factory=dict)
    half_made: bool = False
    locked: bool = False


@dataclass(slots=True)
class Repository:
    commits: dict[str, Commit] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    worktrees: dict[str, Worktree] = field(default_factory=dict)
    checkpoints: dict[str, list[tuple[str, dict]]] = field(default_factory=dict)
    integration: str = ""
    target: str = ""
    landed: dict[str, str] = field(default_factory=dict)  # the same for the branches of quests
    been: list[str] = field(default_factory=list)  # the reflog of main
    kept_apart: set[str] = field(default_factory=set)  # what a person removed, and what it undid
    _kept: int = 0
    _by_content: dict = field(default_factory=dict)
    _green: dict[str, bool] = field(default_factory=dict)

    def commit(self, files: dict, parents: tuple[str, ...], *, salt: str = "") -> str:
        """The same content on the same parents is the same commit, as in git."""
        key = (tuple(sorted((f, tuple(sorted(v))) for f, v in files.items())), parents, salt)
        if key in self._by_content:
            return self._by_content[key]
        number = len(self.commits)
        above = 1 << number
        for parent in parents:
            above |= self.commits[parent].above
        made = Commit(f"c{number}", number, dict(files), above, parents, salt)
        self.commits[made.id] = made
        self._by_content[key] = made.id
        return made.id

    def integration_of(self, target: str) -> str:
        """What landed on this target; for a branch that nothing landed on, where it is."""
        if target == "main":
            return self.integration
        return self.landed.setdefault(target, self.branches.get(target, self.target))

    def tip_of(self, target: str) -> str:
        return self.target if target == "main" else self.branches.get(target, "")

    def move_target(self, commit: str) -> None:
        self.target = commit
        self.been.append(commit)

    def without(self, head: str, tip: str) -> str:
        """What had landed before this work, or an earlier state of it, did."""
        newest = ""
        for one in reversed(list(self.first_side(tip))):
            parents = self.commits[one].parents
            is_own = len(parents) == 2 and self.contains(parents[1], head)
            if is_own and not self.contains(one, head):
                break
            newest = one
        return newest

    def first_side(self, tip: str):
        while tip:
            yield tip
            tip = next(iter(self.commits[tip].parents), "")

    def land(self, target: str, commit: str) -> None:
        if target == "main":
            self.integration = commit
        else:
            self.landed[target] = commit

    def contains(self, ancestor: str, descendant: str) -> bool:
        return bool(self.commits[descendant].above >> self.commits[ancestor].number & 1)

    def base_of(self, one: str, other: str) -> dict[str, frozenset[str]]:
        """The files of the newest commit that both contain.

        After a rewrite there may be several. Git then merges them, and so does this.
        """
        left = self.commits[one].above & self.commits[other].above
        files: dict[str, frozenset[str]] = {}
        while left:
            newest = self.commits[f"c{left.bit_length() - 1}"]
            for name, lines in newest.files.items():
                files[name] = files.get(name, frozenset()) | lines
            left = left & ~newest.above if self.kept_apart else 0
        return files

    def merge(
        self, onto: str, head: str, *, salt: str, is_settled: bool = False
    ) -> tuple[str, tuple[str, ...]]:
        """The merge commit, or no commit and the files that both sides changed.

        Where a person has chosen a side, no lines of the two are in each other's way.
        """
        ours, theirs = self.commits[onto], self.commits[head]
        base = self.base_of(onto, head)
        merged, conflicts = {}, []
        for name in sorted({*ours.files, *theirs.files}):
            a, b, o = (files.get(name) for files in (ours.files, theirs.files, base))
            if b in (a, o):
                merged[name] = a
            elif a == o:
                merged[name] = b
            elif is_settled:
                a, b, o = (lines or frozenset() for lines in (a, b, o))
                gone = o - (a & b) if self.kept_apart else frozenset()
                merged[name] = (a | b) - gone
            else:
                conflicts.append(name)
        if conflicts:
            return "", tuple(conflicts)
        files = {name: lines for name, lines in merged.items() if lines is not None}
        return self.commit(files, (onto, head), salt=salt), ()

    def keep(self, task: str, tree: Worktree) -> None:
        """A checkpoint, unless the last one holds the same; none is ever taken back."""
        points = self.checkpoints.setdefault(task, [])
        if not points or points[-1] != (tree.head, tree.dirty):
            points.append((tree.head, dict(tree.dirty)))
            self._kept |= self.commits[tree.head].above

    def reachable(self) -> int:
        """A mask of every commit some ref still holds."""
        mask = self._kept
        tips = {self.integration, self.target, *self.branches.values(), *self.landed.values()}
        tips |= self.kept_apart
        for tip in tips:
            mask |= self.commits[tip].above
        return mask

    def lines(self, commit: str) -> set[tuple[str, str]]:
        """Every line of every file."""
        files = self.commits[commit].files
        return {(name, line) for name, lines in files.items() for line in lines}

    def is_green(self, commit: str) -> bool:
        """The gate: no line of any file is a bug, and no two lines exclude each other."""
        if commit not in self._green:
            self._green[commit] = self._judged(commit)
        return self._green[commit]

    def _judged(self, commit: str) -> bool:
        lines = {line for v in self.commits[commit].files.values() for line in v}
        if any(line.startswith("bug") for line in lines):
            return False
        pairs = {line for line in lines if line.startswith("pair")}
        return len(pairs) < 2 or "peace" in lines
