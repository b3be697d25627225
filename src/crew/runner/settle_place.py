"""Settles a crew whose repository was copied or moved, before anything else is done there.

A copy has the rows, the id and the links of its original. It gets an id of its own first: every
start ends the processes of a dead runner by that id. The original keeps its worktrees, sessions
and terminals; the copy continues its tasks from their branches and last checkpoints. A crew that
was moved ends what still runs in its old place, and its worktrees are linked again where they are.
"""

import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from crew.domain.kernel.frozen import frozen
from crew.domain.terminals.new_place import copied, worktrees_moved
from crew.git.delivery.sync_journal import move_journal
from crew.git.worktrees.excludes import renew_excludes
from crew.git.worktrees.moved_worktrees import (
    Folder,
    Origin,
    found_folders,
    leave_behind,
    link_again,
    origin_of,
    remove_temporary,
)
from crew.store.fact_log import load_world, record
from crew.store.kept_values import keep_setting, setting
from crew.store.place_record import Place, Standing, is_same
from crew.system.crash_points import effect
from crew.system.processes.ownership import kill_leftovers

if TYPE_CHECKING:
    from crew.workplace import Workplace

_OF_ORIGINAL = ("secret", "mcp-address", "tmux.sock", "tmux.conf")
"""In `.crew`: with these, the agents of a copy could reach the runner of its original."""

_MARKERS = ("{}/", "pane/{}/", "review/{}/")
_SHOWN = 3


def settle_place(workplace: "Workplace") -> None:
    """Give a copy an id of its own, or repair the links after a move. The caller has the lock.

    Safe to repeat: the record of the new place is written last.
    """
    place, repo = workplace.place, workplace.repo
    if place is not None:
        is_copied = workplace.standing == Standing.COPIED
        origin: Origin | None = Origin(git_dir=Path(place.path), is_copied=is_copied)
    else:
        origin = origin_of(repo)
    if origin is None:
        _settle(workplace, workplace.repo_id)
        return
    crew = str(uuid.uuid4())
    if origin.is_copied:
        keep_setting(workplace.db, "repo_id", crew)
        _drop_originals(workplace.folder)
    else:
        _end_processes(workplace)
        move_journal(repo, old=origin.git_dir)
    _Move(workplace=workplace, origin=origin, crew=crew).carry_out()


def _settle(workplace: "Workplace", crew: str, worktrees: Path | None = None) -> None:
    usual = workplace.usual_worktrees(workplace.root)
    other = worktrees not in (None, usual)
    place = Place(
        id=crew,
        path=str(workplace.repo.common_dir),
        root=str(workplace.root),
        worktrees=str(worktrees) if other else "",
        instead_of=str(usual) if other else "",
    )
    workplace.settle_at(place)


def _end_processes(workplace: "Workplace") -> None:
    """End what a runner left at the old place: it would write into worktrees that are in use."""
    ids = {workplace.place.id if workplace.place else "", setting(workplace.db, "repo_id") or ""}
    for crew in filter(None, ids):
        for marker in _MARKERS:
            kill_leftovers(marker.format(crew))


@effect("runner.drop_originals")
def _drop_originals(folder: Path) -> None:
    for name in _OF_ORIGINAL:
        (folder / name).unlink(missing_ok=True)


@frozen
class _Move:
    """The way of a crew to its present place, and its id from now on."""

    workplace: "Workplace"
    origin: Origin
    crew: str

    def carry_out(self) -> None:
        workplace, origin = self.workplace, self.origin
        usual = workplace.usual_worktrees(workplace.root)
        own = self._own_folder(usual) if origin.is_copied else usual
        folders = found_folders(workplace.repo, origin, own)
        worktrees = own if origin.is_copied else _where_they_are(folders, usual)
        world, at = load_world(workplace.db), time.time()
        places = self._link(folders, worktrees)
        began = [task for task in world.tasks.values() if task.worktree]
        for task in began if not origin.is_copied else ():
            places.setdefault(task.id, str(worktrees / task.id))
        world = record(workplace.db, world, worktrees_moved(world, places, at=at))
        if origin.is_copied:
            record(workplace.db, world, copied(world, at=at))
        renew_excludes(workplace.repo)
        _settle(workplace, self.crew, worktrees)
        workplace.tell(self._words(folders, worktrees, _named([one.id for one in began])))

    def _own_folder(self, usual: Path) -> Path:
        """The folder of a copy's worktrees: never that of its original, which has the same ids."""
        workplace, place = self.workplace, self.workplace.place
        taken = {was.parent for was in self._recorded()}
        if place is not None:
            taken |= {workplace.usual_worktrees(Path(place.root)), Path(place.worktrees or "/")}
        if usual in taken or any(is_same(usual, one) for one in taken):
            return usual / f"{workplace.root.name}-{self.crew[:8]}"
        return usual

    def _recorded(self) -> Iterable[Path]:
        nowhere = found_folders(self.workplace.repo, self.origin, self.workplace.folder)
        return (one.was for one in nowhere)

    def _link(self, folders: tuple[Folder, ...], worktrees: Path) -> dict[str, str]:
        """Link every worktree again, or leave it to the original; the places by their names."""
        repo, places = self.workplace.repo, dict[str, str]()
        for one in folders:
            if self.origin.is_copied and one.now is None:
                leave_behind(repo, one)
            elif one.is_temporary:
                remove_temporary(repo, one, self.origin)
            else:
                path = one.now or worktrees / one.was.name
                link_again(repo, one, path, self.origin)
                places[one.was.name] = str(path)
        return places

    def _words(self, folders: tuple[Folder, ...], worktrees: Path, began: str) -> str:
        former = self.origin.git_dir
        former = former.parent if former.name == ".git" else former
        lost = [one.was.name for one in folders if one.now is None and not one.is_temporary]
        if self.origin.is_copied:
            words = f"this repository is a copy of {former}: it has a crew of its own now, and "
            return words + (
                f"{began} continues here from the last checkpoint, in {worktrees}; the worktrees "
                f"of {former} stay as they are"
                if lost
                else "what belongs to the other stays as it is"
            )
        kept = len([one for one in folders if one.now is not None and not one.is_temporary])
        words = f"this repository was moved here from {former}: crew repaired the links of {kept} "
        words += "worktree" + "s" * (kept != 1) + (f" in {worktrees}" if kept else "")
        return words + (
            f"; no worktree of {', '.join(lost)} was found, and crew makes it again from its last "
            "checkpoint"
            if lost
            else ""
        )


def _where_they_are(folders: tuple[Folder, ...], usual: Path) -> Path:
    """The folder in which most worktrees of a moved crew still are; their sessions know it."""
    parents = [one.now.parent for one in folders if one.now is not None and not one.is_temporary]
    return max(parents, key=parents.count, default=usual)


def _named(tasks: list[str]) -> str:
    more = f" and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else ""
    return (
        f"task{'s' * (len(tasks) > 1)} {', '.join(tasks[:_SHOWN])}{more}" if tasks else "its work"
    )
