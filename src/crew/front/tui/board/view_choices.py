"""What a person chose for the board: grouping, sort, filter, panel; kept for the next time."""

from crew.domain.kernel.frozen import frozen

GROUPINGS = ("state", "wave", "quest")
SORTS = ("id", "status", "priority", "agent", "title", "newest")


@frozen
class ViewChoices:
    """`panel` is the pane that shows the task; `everything` shows merged and closed tasks too."""

    group: str = "state"
    sort: str = "id"
    filter: str = ""
    panel: str = "description"
    everything: bool = False


def following(value: str, of: tuple[str, ...]) -> str:
    """The choice after this one; after the last comes the first."""
    return of[(of.index(value) + 1) % len(of)] if value in of else of[0]
