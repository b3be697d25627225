"""One repository with a crew in it: where its files are, its config, its store and its tasks."""

import contextlib
import functools
import itertools
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crew.domain.kernel.errors import Conflict, CrewError, NotFound
from crew.domain.rows.run import Run
from crew.domain.rules import Rules
from crew.find_crew import load_folder
from crew.store.database import Database, open_database
from crew.store.kept_values import (
    find_index,
    first_setting,
    index_text,
    keep_index,
    keep_setting,
    parsed_index,
    setting,
)
from crew.store.place_record import Place, Standing, keep_place, read_place, standing
from crew.system.crash_points import effect
from crew.system.private_files import close_to_others, ensure_pipe, make_private_folder
from crew.tasks.source_snapshot import Items, Snapshot
from crew.tasks.task_source import TaskSource, open_source

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from crew.config.model import AgentsSettings, Settings
    from crew.domain.rows.channel import Member
    from crew.domain.rows.task import Task
    from crew.git.repository import Repository
    from crew.git.worktrees.worktree_admin import Kind

EXCLUDED = (
    *("/.crew/*", "!/.crew/tasks/"),
    *("/.crew/tasks/**/.lock", "/.crew/tasks/**/*.crew-tmp"),
)

SHARED = frozenset({"tasks"})
"""The entries of `.crew` that git commits and checks out, with the modes that git gives them."""

TASKS_OF = "tasks_of"

_OLDER = ("crew", "worktrees")
"""In a git directory: what a crew has that is older than its record, and may be a copy."""


def _unheard(words: str) -> None:
    import logging  # noqa: PLC0415 - slow to load, and there is seldom such a line

    logging.getLogger(__name__).warning("%s", words)


@dataclass(frozen=True)
class Workplace:
    """Everything a command needs. Each part is loaded on first use.

    `tell` gets a line for the person, such as what a repair before the command did.
    """

    root: Path
    tell: "Callable[[str], None]" = field(default=_unheard, compare=False, repr=False)

    @functools.cached_property
    def repo(self) -> "Repository":
        from crew.git.repository import Repository, find_repository  # noqa: PLC0415 - see above

        git_dir = self.root / ".git"
        if git_dir.is_dir():  # nearly always, and it saves a call of git
            return Repository(root=self.root, common_dir=git_dir)
        return find_repository(self.root)

    def expect_sandbox(self) -> None:
        """Prepare worktrees for programs in a sandbox, unless the config has turned it off."""
        if self.settings.sandbox.mode != "off":
            self.__dict__["repo"] = replace(self.repo, is_confined=True)

    @functools.cached_property
    def folder(self) -> Path:
        return self.root / ".crew"

    @property
    def lock_file(self) -> Path:
        return self.folder / "lock"

    @property
    def wake_file(self) -> Path:
        return self.folder / "wake"

    @property
    def state_file(self) -> Path:
        return self.folder / "state.json"

    @functools.cached_property
    def logs(self) -> Path:
        return self.folder / "logs"

    def task_log(self, task: str) -> Path:
        return _inside(self.logs, f"task-{task}.log")

    def worktree_of(self, task: "Task") -> Path:
        """The folder of a task's worktree. In a copy the rows still name those of the original."""
        if self.standing == Standing.COPIED:
            return self.folder / f"no-worktree-{task.id}"
        return _inside(self.root, task.worktree)

    @functools.cached_property
    def settings(self) -> "Settings":
        from crew.trusted_config import load_settings  # noqa: PLC0415 - `ps` does without config

        return load_settings(self.root)

    @property
    def database_file(self) -> Path:
        return self.folder / "crew.db"

    @functools.cached_property
    def db(self) -> Database:
        db = open_database(self.database_file)
        self.__dict__["opened_file"] = file_number(self.database_file)
        return db

    @functools.cached_property
    def opened_file(self) -> tuple[int, int] | None:
        """Which file this process has open as its database, if any."""
        return None

    @property
    def has_lost_folder(self) -> bool:
        """Whether the open database was deleted, most likely with all of `.crew`."""
        opened = self.opened_file
        return opened is not None and file_number(self.database_file) != opened

    def close_database(self) -> None:
        """Close the database, so that its file can be replaced; the next use opens it again."""
        self.__dict__.pop("opened_file", None)
        if (db := self.__dict__.pop("db", None)) is not None:
            db.close()

    @functools.cached_property
    def place(self) -> Place | None:
        """Where this crew is, as its record says."""
        return read_place(self.repo.common_dir)

    @functools.cached_property
    def standing(self) -> Standing:
        """Whether this crew is where its record says; a copy must not touch what is another's."""
        return standing(self.repo.common_dir, self.place)

    @functools.cached_property
    def repo_id(self) -> str:
        """The unique id of this repository, which marks crew's processes.

        A copy has none before the first command that writes: no process carries this one.
        """
        import uuid  # noqa: PLC0415 - lists do without it

        if self.place is None:
            return first_setting(self.db, "repo_id", str(uuid.uuid4()))
        return str(uuid.uuid4()) if self.standing == Standing.COPIED else self.place.id

    def settle_at(self, place: Place) -> None:
        """Record where this crew is from now on, and under which id."""
        keep_setting(self.db, "repo_id", place.id)
        keep_place(self.repo.common_dir, place)
        for name in ("place", "standing", "repo_id", "worktrees"):
            self.__dict__.pop(name, None)

    @functools.cached_property
    def source(self) -> TaskSource:
        """The source of the tasks.

        Raises if it changed, since another source has other tasks under the same ids.
        """
        known, named = self.kept_tasks_of, self.tasks_of
        if known not in (None, named):
            raise Conflict(
                f"this crew works on the tasks of {known}, but the config names {named}",
                hint=f"{_way_back(known, named)} sets it back; `crew clean` deletes all records "
                "except the tasks",
                code="other_tasks",
            )
        return self.kept_source

    @property
    def kept_source(self) -> TaskSource:
        """The source of the tasks that the rows belong to, whatever the config names now."""
        source, _, namespace = (self.kept_tasks_of or self.tasks_of).partition("/")
        return open_source(source, self.root, namespace=namespace)

    @property
    def kept_tasks_of(self) -> str | None:
        """The source and the namespace that the rows belong to; None before there are rows."""
        return setting(self.db, TASKS_OF)

    @property
    def tasks_of(self) -> str:
        """The source and the namespace that the config names."""
        return f"{self.settings.tasks.source}/{self.settings.tasks.namespace}"

    def keep_source(self) -> None:
        """Record that the rows belong to the tasks of this source."""
        if self.kept_tasks_of is None:
            keep_setting(self.db, TASKS_OF, self.tasks_of)

    @functools.cached_property
    def target(self) -> str:
        from crew.git.repository import target_branch  # noqa: PLC0415 - lists do without git

        return target_branch(self.repo, self.settings.merge.target)

    @property
    def empty_submodules(self) -> tuple[str, ...]:
        """The submodules of the target branch that are not cloned here: tasks lack their files."""
        if self.root != self.repo.common_dir and not (self.root / ".gitmodules").exists():
            return ()
        from crew.git.worktrees.submodules import missing_content  # noqa: PLC0415 - few have any

        return missing_content(self.repo, f"refs/heads/{self.target}")

    def branch_around(self, place: Path) -> str | None:
        """The branch of the person's worktree around `place`; None when HEAD is detached."""
        from crew.git.repository import branch_around  # noqa: PLC0415 - lists do without git

        return branch_around(self.repo, place, agents=self.worktrees)

    def base_of_new(self, named: str | None, *, place: Path) -> str | None:
        """The branch that a new task starts from and lands on; None for the target of merges.

        If none is named, `[tasks] new_task_base` decides whether it is the branch around `place`.
        """
        branch = named
        if not branch and self.settings.tasks.new_task_base == "current":
            around = self.branch_around(place)
            branch = around if around != self.target else None
        if branch:
            self.refuse_missing_branch(branch)
        return branch or None

    def refuse_missing_branch(self, branch: str) -> None:
        if not self.has_branch(branch):
            raise NotFound(
                f"there is no branch {branch!r}",
                hint="`git branch` lists them",
                code="unknown_branch",
            )

    def has_branch(self, branch: str) -> bool:
        from crew.git.repository import has_branch  # noqa: PLC0415 - lists do without git

        return has_branch(self.repo, branch)

    @property
    def worktree_kind(self) -> "Kind":
        """Whether a new worktree gets a repository of its own, or is linked to the main one."""
        return "linked" if self.settings.worktree.kind == "linked" else "own"

    @functools.cached_property
    def worktrees(self) -> Path:
        """The folder of the worktrees; after a move it may be the one that they are in."""
        usual = self.usual_worktrees(self.root)
        place = self.place
        if place is not None and place.worktrees and place.instead_of == str(usual):
            return Path(place.worktrees)
        return usual

    def usual_worktrees(self, root: Path) -> Path:
        """The folder of the worktrees of a repository there, by its name or the config."""
        configured = self.settings.worktree.dir
        if configured:
            return (root / Path(configured).expanduser()).resolve()
        return root.parent / f"{root.name}-worktrees"

    @functools.cached_property
    def rules(self) -> Rules:
        return rules_from(self.settings)

    def renew_agents(self, fresh: "AgentsSettings", *, keep: "Container[str]") -> None:
        """Replace all agents except those to keep. Other settings stay as they are."""
        from dataclasses import replace  # noqa: PLC0415 - only a runner needs it

        now = self.settings.agents.by_name
        kept = {name: agent for name, agent in now.items() if name in keep}
        agents = replace(fresh, by_name={**fresh.by_name, **kept})
        self.__dict__["settings"] = replace(self.settings, agents=agents)

    def session_of(self, whose: "Run | Member") -> str:
        """Its session id. A new id is deterministic, so a retry gets the same one."""
        import uuid  # noqa: PLC0415 - lists do without it

        name = f"{whose.id}/{whose.session_number}"
        return whose.session or str(uuid.uuid5(uuid.UUID(self.repo_id), name))

    def snapshot(self) -> Snapshot:
        """All tasks of the source as they are now. Only changed files are read again."""
        rows = find_index(self.db, self._index_name)
        before = Snapshot.from_rows(rows) if rows is not None else None
        now = self.source.scan(before)
        if now is not before:
            # The index only saves time: tasks must be readable on a full or read-only disk.
            with contextlib.suppress(CrewError):
                keep_index(self.db, self._index_name, now.rows())
        return now

    def index_text(self) -> bytes:
        """The tasks of the source as they were read last; `known_items` reads it."""
        return index_text(self.db, self._index_name)

    @property
    def _index_name(self) -> str:
        tasks = self.settings.tasks
        return f"{tasks.source}:{tasks.namespace}"


def file_number(file: Path) -> tuple[int, int] | None:
    """What tells a file from another one of its name; None if there is none."""
    try:
        found = os.stat(file)  # noqa: PTH116 - at every look of a runner
    except OSError:
        return None
    return found.st_dev, found.st_ino


def known_items(index: bytes) -> Items:
    """The tasks in a stored index."""
    rows = parsed_index(index)
    return Snapshot.from_rows(rows).by_id if rows is not None else Items({})


def rules_from(settings: "Settings") -> Rules:
    return Rules(
        max_steps=settings.run.max_steps,
        max_rounds=settings.review.max_rounds,
        backoff_s=settings.run.backoff_s,
        max_backoff_s=settings.run.max_backoff_s,
        stuck_after=settings.run.stuck_after,
        reset_on_recovery=settings.run.recovery == "reset",
        test_slots=settings.merge.slots,
        longest_queue=settings.merge.batch,
        one_at_a_time=settings.merge.strategy == "serial",
        conflicts_to_agent=settings.merge.conflict == "agent",
        keep_worktrees=settings.worktree.keep,
        reviewers=_reviewers(settings),
        min_reviews=settings.complete.min_reviews,
        skip_review=settings.complete.skip_review,
        merge_completed=settings.complete.merge,
        **kinds_in(settings),
    )


def kinds_in(settings: "Settings") -> dict[str, Any]:
    """The part of the rules that describes the configured agents."""
    from crew.config.agent_programs import missing_programs  # noqa: PLC0415 - lists do without rules
    from crew.config.model import MOVABLE_SESSIONS  # noqa: PLC0415 - settings have loaded it

    agents = settings.agents.by_name
    movable = (name for name, one in agents.items() if one.adapter in MOVABLE_SESSIONS)
    return {
        "default_kind": settings.agents.worker_default,
        "missing": missing_programs(settings.agents),
        "providers": {name: one.provider or one.adapter for name, one in agents.items()},
        "movable_sessions": frozenset(movable),
    }


_BOTH_REVIEWERS = ("claude-reviewer", "codex-reviewer")
"""The reviewers of mode `claudex`, unless others are named: never fewer than two."""


def _reviewers(settings: "Settings") -> tuple[str, ...]:
    """The agents of `[review]`, or the default reviewer; empty if reviews are off."""
    if settings.review.mode == "none" and not settings.complete.min_reviews:
        return ()
    named = settings.review.agents or (settings.agents.reviewer_default,)
    if settings.review.mode != "claudex":
        return named[:1]
    return at_least_two(named, settings)


def at_least_two(named: tuple[str, ...], settings: "Settings") -> tuple[str, ...]:
    """The named reviewers of mode `claudex`, each once; the defaults fill the gap."""
    different = tuple(dict.fromkeys(named))
    defaults = (settings.agents.reviewer_default, *_BOTH_REVIEWERS)
    others = (name for name in dict.fromkeys(defaults) if name not in different)
    return (*different, *itertools.islice(others, max(0, 2 - len(different))))


def _way_back(known: str, named: str) -> str:
    """The commands that make the config name the known source and namespace."""
    keys = ("tasks.source", "tasks.namespace")
    parts = zip(keys, known.partition("/")[::2], named.partition("/")[::2], strict=True)
    return " and ".join(f"`crew config set {key} {was}`" for key, was, now in parts if was != now)


def find_workplace(start: Path) -> Workplace:
    """The crew of the repository that contains `start`, which may be an agent's worktree."""
    return Workplace(root=load_folder(start).parent)


def find_root(start: Path) -> Path:
    """The root of the repository that `start` is in, with or without a crew."""
    from crew.git.repository import find_repository  # noqa: PLC0415 - few commands need it

    return find_repository(start).root


def usable_repository(start: Path) -> "Repository":
    """The repository that `start` is in, unless crew cannot work on it."""
    from crew.git.repository import check_usable, find_repository  # noqa: PLC0415 - only for `init`

    repo = find_repository(start)
    check_usable(repo)
    return repo


def make_workplace(start: Path) -> Workplace:
    """Create `.crew/` in this repository. Safe to repeat: existing files stay unchanged."""
    from crew.git.repository import exclude_locally  # noqa: PLC0415 - only `init` needs it

    repo = usable_repository(start)
    workplace = Workplace(root=repo.root)
    make_folders(workplace)
    exclude_locally(repo, EXCLUDED)
    workplace.source.ensure()
    crew = workplace.repo_id  # makes the database and the name in it
    if workplace.place is None and not any((repo.common_dir / name).exists() for name in _OLDER):
        workplace.settle_at(Place(id=crew, path=str(repo.common_dir), root=str(repo.root)))
    return workplace


@functools.lru_cache(maxsize=2000)
def _inside(folder: Path, name: str) -> Path:
    """The same few paths for every step: each is slow to make."""
    return folder / name


@effect("crew.init")
def make_folders(workplace: Workplace) -> None:
    try:
        make_private_folder(workplace.logs)
        close_to_others(workplace.folder, besides=SHARED)
        ensure_pipe(workplace.wake_file)
    except OSError as error:
        raise CrewError(
            f"cannot write to {workplace.folder}: {error.strerror}",
            hint="crew keeps its state there: check the folder's owner, permissions and disk",
            code="not_writable",
        ) from error
