"""A repository in memory: commits, refs, worktrees and checkpoints, enough to merge and to lose."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Commit:
    """`files` maps a file to its lines; `above` is a bit mask of all commits it contains."""

    id: str
    number: int
    files: dict[str, frozenset[str]]
    above: int


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
        made = Commit(f"c{number}", number, dict(files), above)
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

    def land(self, target: str, commit: str) -> None:
        if target == "main":
            self.integration = commit
        else:
            self.landed[target] = commit

    def contains(self, ancestor: str, descendant: str) -> bool:
        return bool(self.commits[descendant].above >> self.commits[ancestor].number & 1)

    def merge(
        self, onto: str, head: str, *, salt: str, is_settled: bool = False
    ) -> tuple[str, tuple[str, ...]]:
        """The merge commit, or no commit and the files that both sides changed.

        Where a person has chosen a side, no lines of the two are in each other's way.
        """
        ours, theirs = self.commits[onto], self.commits[head]
        base = self.commits[f"c{(ours.above & theirs.above).bit_length() - 1}"].files
        merged, conflicts = {}, []
        for name in sorted({*ours.files, *theirs.files}):
            a, b, o = (files.get(name) for files in (ours.files, theirs.files, base))
            if b in (a, o):
                merged[name] = a
            elif a == o:
                merged[name] = b
            elif is_settled:
                merged[name] = (a or frozenset()) | (b or frozenset())
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
        for tip in tips:
            mask |= self.commits[tip].above
        return mask

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
