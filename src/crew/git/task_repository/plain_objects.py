"""Takes a few plain commits of an agent's repository in without starting git.

A usual step makes one commit with few files: reading and checking these here takes a millisecond,
four git processes take thirty. Whatever is unusual is left to git, which checks it by its own
rules: names that could be a `.git` anywhere, submodules, signatures, packs, large or damaged
objects. So this module need not know what is bad, only what is certainly harmless.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from crew.git.commit_files import read_commit
from crew.git.object_files import ObjectFile, read_object, store_objects
from crew.git.repository import Repository
from crew.git.task_repository.long_paths import is_too_long

MOST_OBJECTS = 60
"""For more objects git is faster, even with its start (`python -m bench imports`)."""
_MOST_ENTRIES = 2000
_MOST_TREES = 100
_DEEPEST = 50
_LONGEST_ATTRIBUTES = 2000

_ID = rb"[0-9a-f]{40}"
_PERSON = rb"[^<>\0\n]+ <[^<>\0\n]*> (?:0|[1-9]\d{0,10}) [+-]\d{4}\n"
_COMMIT = re.compile(
    rb"tree (%b)\n((?:parent %b\n)*)author %bcommitter %b\n[^\0]*" % (_ID, _ID, _PERSON, _PERSON)
)
_ENTRY = re.compile(rb"(40000|100644|100755|120000) ([^\0/]+)\0(.{20})", re.DOTALL)
_NAME = re.compile(rb"(?!\.git)(?!\.\.?$)[ -.0-9;-\[\]-}]*[!-\-0-9;-\[\]-}]", re.IGNORECASE)
_FAMILIAR = (b".gitignore", b".gitattributes", b".gitkeep", b".github")
_FOLDER = b"40000"
_LINK = b"120000"


class NotPlain(Exception):
    """Git must look at these objects."""


_trees: dict[tuple[str, str], Mapping[bytes, "PlainEntry"]] = {}
"""Trees that a repository has: those of a step are compared with its files, and with the next."""


class PlainEntry(NamedTuple):
    """A line of a tree. Each step compares dozens of them: with tuples that is quick."""

    mode: bytes
    name: bytes
    object_id: str


def take_in_plain(repo: Repository, agent_objects: Path, commit: str, *, known: str | None) -> bool:
    """Store a commit and all that the main repository lacks of it; False if git must do it.

    `known` is the commit of the task's branch there, from which the agent's work likely begins.
    """
    objects = repo.common_dir / "objects"
    if known is None or objects.stat().st_mode & 0o2000:  # a group's: git knows the permissions
        return False
    search = _Search(objects, agent_objects)
    try:
        found = search.found_for(commit, known)
    except NotPlain:
        return False
    store_objects(objects, found)
    for tree, entries in search.trees.items():
        _remember(objects, tree, entries)
    return True


def plain_commit(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The tree and the parents of a commit without anything unusual."""
    found = _COMMIT.fullmatch(content)
    if found is None:
        raise NotPlain
    return found[1].decode(), tuple(line[7:].decode() for line in found[2].splitlines())


def plain_entries(content: bytes) -> Mapping[bytes, PlainEntry]:
    """The lines of a tree, if every name is harmless on every system, and their order is right."""
    found = [PlainEntry(one[1], one[2], one[3].hex()) for one in _entries(content)]
    if len(found) > _MOST_ENTRIES or not all(map(_is_harmless, found)):
        raise NotPlain
    order = [one.name + (b"/" if one.mode == _FOLDER else b"") for one in found]
    if any(a >= b for a, b in pairwise(order)):
        raise NotPlain
    entries = {one.name: one for one in found}
    if len(entries) < len(found):
        raise NotPlain
    return entries


def stored_tree(objects: Path, tree: str) -> Mapping[bytes, PlainEntry]:
    """The same for a tree that a repository has. It is read once: a tree never changes."""
    if (known := _trees.get((str(objects), tree))) is not None:
        return known
    found = read_object(objects, tree)
    if found is None or found.kind != b"tree":
        raise NotPlain
    entries = plain_entries(found.content)
    _remember(objects, tree, entries)
    return entries


def _remember(objects: Path, tree: str, entries: Mapping[bytes, PlainEntry]) -> None:
    if len(_trees) >= _MOST_TREES:
        _trees.clear()
    _trees[str(objects), tree] = entries


def _entries(content: bytes) -> Iterator["re.Match[bytes]"]:
    at = 0
    while at < len(content):
        found = _ENTRY.match(content, at)
        if found is None:
            raise NotPlain
        yield found
        at = found.end()


def _is_harmless(entry: PlainEntry) -> bool:
    if entry.name in _FAMILIAR:
        return entry.mode != _LINK
    return _NAME.fullmatch(entry.name) is not None


class _Search:
    """Finds the objects between a known commit and the agent's, each after its parts.

    Each is checked, even if the main repository has it: a checkpoint stores files unchecked. Only
    the known commit and its parts count as checked.
    """

    def __init__(self, objects: Path, agent_objects: Path) -> None:
        self._objects = objects
        self._agent_objects = agent_objects
        self._found: dict[str, ObjectFile] = {}
        self.trees: dict[str, Mapping[bytes, PlainEntry]] = {}

    def found_for(self, commit: str, known: str) -> dict[str, ObjectFile]:
        line: list[tuple[str, str, ObjectFile]] = []
        one = commit
        while one != known:
            found = self._read(one, b"commit", more=len(line))
            tree, parents = plain_commit(found.content)
            line.append((one, tree, found))
            if len(parents) != 1:
                raise NotPlain
            one = parents[0]
        before = self._tree_of(known)
        for one, tree, found in reversed(line):
            self._add_tree(tree, before)
            self._found[one] = found
            before = tree
        return self._found

    def _tree_of(self, commit: str) -> str:
        found = read_commit(self._objects.parent, commit)
        if found is None:
            raise NotPlain
        return found.tree

    def _add_tree(self, tree: str, before: str | None, *, above: tuple[bytes, ...] = ()) -> None:
        """Add a tree and its parts. Most are those of the tree that was in its place before.

        `above` are the names of the folders that lead there. A tree in a second place is left to
        git: its paths may be too long there.
        """
        if tree == before:
            return
        if self._has(tree, b"tree") or len(above) > _DEEPEST:
            raise NotPlain
        found = self._read(tree, b"tree")
        former = self._former(before) if before else {}
        entries = plain_entries(found.content)
        for entry in entries.values():
            old = former.get(entry.name)
            if entry == old:
                continue
            path = (*above, entry.name)
            if is_too_long(b"/".join(path)):
                raise NotPlain
            if entry.mode == _FOLDER:
                place = old.object_id if old is not None and old.mode == _FOLDER else None
                self._add_tree(entry.object_id, place, above=path)
            else:
                self._add_blob(entry)
        self._found[tree], self.trees[tree] = found, entries

    def _former(self, tree: str) -> Mapping[bytes, PlainEntry]:
        return self.trees.get(tree) or stored_tree(self._objects, tree)

    def _add_blob(self, entry: PlainEntry) -> None:
        if not self._has(entry.object_id, b"blob"):
            self._found[entry.object_id] = self._read(entry.object_id, b"blob")
        if entry.name == b".gitattributes" and not _is_short(self._found[entry.object_id].content):
            raise NotPlain

    def _has(self, object_id: str, kind: bytes) -> bool:
        """Whether the object was found already. One of another kind cannot be in this place."""
        found = self._found.get(object_id)
        if found is not None and found.kind != kind:
            raise NotPlain
        return found is not None

    def _read(self, object_id: str, kind: bytes, *, more: int = 0) -> ObjectFile:
        found = read_object(self._agent_objects, object_id) or read_object(self._objects, object_id)
        if found is None:
            raise NotPlain
        if found.kind != kind or len(self._found) + more >= MOST_OBJECTS:
            raise NotPlain
        return found


def _is_short(attributes: bytes) -> bool:
    """Whether git reads all its lines: it refuses to store attributes with longer ones."""
    return max(map(len, attributes.split(b"\n"))) <= _LONGEST_ATTRIBUTES
