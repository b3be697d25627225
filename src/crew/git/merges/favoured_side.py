"""Builds the tree of a merge in which one side wins each conflict."""

import os
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crew.git.git_command import ask, failure, git
from crew.git.merges.attributes import attributes_worktree
from crew.git.repository import Repository
from crew.git.worktrees.worktree_admin import environment_for

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

_STAGED = re.compile(r"(\d+) ([0-9a-f]+) ([123])\t(.*)", re.DOTALL)
_BASE, _ONTO, _HEAD = 1, 2, 3


class TreeEntry(NamedTuple):
    mode: str
    blob: str

    @property
    def is_file(self) -> bool:
        return self.mode in {"100644", "100755"}


def favoured_tree(repo: Repository, *, onto: str, head: str, favours_head: bool) -> str:
    """Merge line by line. Files that do not allow it are taken whole from the side."""
    place = attributes_worktree(repo, onto)
    args = ("merge-tree", "--write-tree", "-z", "--no-messages", onto, head)
    answer = ask(place, *args, env=environment_for(repo.common_dir, place))
    tree, _, rest = os.fsdecode(answer.out).partition("\0")
    if answer.code not in {0, 1} or not tree:
        raise failure(args, answer)
    paths: dict[str, dict[int, TreeEntry]] = defaultdict(dict)
    for mode, blob, stage, path in (
        m.groups() for m in map(_STAGED.fullmatch, rest.split("\0")) if m
    ):
        paths[path][int(stage)] = TreeEntry(mode, blob)
    winner = _HEAD if favours_head else _ONTO
    settled = {path: _resolve_path(repo, stages, winner) for path, stages in paths.items()}
    return _with_entries(repo, tree, settled)


def _resolve_path(
    repo: Repository, stages: Mapping[int, TreeEntry], winner: int
) -> TreeEntry | None:
    """The entry in the result; None if the path is not in it."""
    wins = stages.get(winner)
    if wins is None or not all(entry.is_file for entry in stages.values()):
        return wins
    if _ONTO not in stages or _HEAD not in stages:
        return wins
    merged = _merged_lines(repo, stages, "--theirs" if winner == _HEAD else "--ours")
    return wins if merged is None else TreeEntry(wins.mode, merged)


def _folder() -> "TemporaryDirectory[str]":
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - slow to load, and seldom needed

    return TemporaryDirectory(prefix="crew-merge-")


def _merged_lines(repo: Repository, stages: Mapping[int, TreeEntry], side: str) -> str | None:
    """The blob of the merged file, in which the side wins; None for a binary file."""
    with _folder() as folder:
        files = [Path(folder) / name for name in ("onto", "base", "head")]
        for file, stage in zip(files, (_ONTO, _BASE, _HEAD), strict=True):
            found = stages.get(stage)
            blob = ask(repo.common_dir, "cat-file", "blob", found.blob).out if found else b""
            file.write_bytes(blob)
        answer = ask(repo.common_dir, "merge-file", "-p", side, *map(str, files))
        if answer.code != 0:
            return None
    return git(repo.common_dir, "hash-object", "-w", "--stdin", stdin=answer.out)


def _with_entries(repo: Repository, tree: str, entries: Mapping[str, TreeEntry | None]) -> str:
    """The tree with these paths replaced. None removes a path."""
    gone = f"0 {'0' * len(tree)}"
    lines = [
        f"{f'{entry.mode} {entry.blob}' if entry else gone}\t{path}\0"
        for path, entry in entries.items()
    ]
    with _folder() as folder:
        env = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        git(repo.common_dir, "read-tree", tree, env=env)
        stdin = os.fsencode("".join(lines))
        git(repo.common_dir, "update-index", "-z", "--index-info", stdin=stdin, env=env)
        return git(repo.common_dir, "write-tree", env=env)
