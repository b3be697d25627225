"""The reports of doers about a merge queue: tips, merges, a queue that was built, a delivery."""

from crew.domain.kernel.frozen import frozen
from crew.domain.merging.conflict_text import Sides
from crew.domain.rows.merge_queue import Chain, Entry, Trial
from crew.domain.rows.task import Task


@frozen
class Tips:
    """Where the integration ref and the target branch are; a missing target counts as there too.

    `renamed_to` is the name that a person seems to have given to the target, if it is missing, and
    `renamed_tip` where that branch is.
    """

    integration: str
    target: str
    has_target: bool = True
    renamed_to: str = ""
    renamed_tip: str = ""


@frozen
class MergeResult:
    """A merge commit, or the paths that conflict and git's message about them.

    `refused` is the reason why git cannot merge this commit with anything. `theirs` is the commit
    that the work conflicts with, if it is another than the one it was to be merged onto.
    """

    commit: str = ""
    conflicts: tuple[str, ...] = ()
    detail: str = ""
    refused: str = ""
    theirs: str = ""


@frozen
class Rewrite:
    """What crew found and did in git when a person had rewritten a target.

    `now` is the target as it is, `superseded` the commit that supersedes all that it lost, and
    `dropped` are the tasks that had been delivered and of which next to nothing is left, each with
    what `git cherry-pick` needs to bring it back.
    """

    now: str
    superseded: str
    dropped: tuple[Entry, ...] = ()


@frozen
class Signed:
    """The commits that take the place of others in the queue, or why no key signs them now."""

    placed: tuple[tuple[str, str], ...] = ()
    problem: str = ""
    remedy: str = ""


@frozen
class Conflicting:
    """A task that does not merge with the commit `onto`, and both sides of the conflict."""

    task: Task
    merge: MergeResult
    sides: Sides
    onto: str


@frozen
class Assembled:
    """A queue as it was built just now.

    `landed` are the tasks that the target has already, each with the tip that has it; `waiting` is
    the reason why the target itself cannot be merged. `refused` are the tasks that git cannot merge
    at all, each with the reason.
    """

    tips: Tips
    base: str
    proven: bool
    waiting: str
    chain: Chain
    trials: tuple[Trial, ...]
    cleared: tuple[Entry, ...]
    held: tuple[Entry, ...]
    landed: tuple[tuple[Task, str], ...]
    conflicts: tuple[Conflicting, ...]
    refused: tuple[tuple[Task, str], ...] = ()

    @property
    def commits(self) -> frozenset[str]:
        chains = (self.chain, *(trial.chain for trial in self.trials))
        return frozenset((self.base, *(one.commit for chain in chains for one in chain)))


@frozen
class Delivered:
    """The result of a delivery: current, delivered, waiting, diverged, over or rewritten.

    `commit` is the tip of the target branch, or the newest commit that a person took out of it;
    `is_shown` means that a checkout shows it.
    """

    state: str
    commit: str = ""
    is_shown: bool = True
    reason: str = ""
    remedy: str = ""
