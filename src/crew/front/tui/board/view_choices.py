"""What a person chose for the board: grouping, sort, filter, panel; kept for the next time."""

from crew.config.model import VIEW_GROUPS as GROUPINGS
from crew.config.model import VIEW_SORTS as SORTS
from crew.config.model import TuiSettings
from crew.domain.kernel.frozen import frozen
from crew.front.tui.widgets.safe_text import Span, safe

__all__ = ["GROUPINGS", "SORTS", "ViewChoices", "chosen_spans", "following"]


@frozen
class ViewChoices:
    """`panel` is the pane that shows the task; `everything` shows merged and closed tasks too.

    `namespace` is that of the shown tasks if the crew works on another one; it is not kept.
    """

    group: str = "state"
    sort: str = "id"
    filter: str = ""
    panel: str = "description"
    everything: bool = False
    namespace: str = ""


KEPT = ("group", "sort", "filter", "panel", "everything")


def choices_in(settings: TuiSettings) -> ViewChoices:
    return ViewChoices(**{name: getattr(settings, name) for name in KEPT})


def following(value: str, of: tuple[str, ...]) -> str:
    """The choice after this one; after the last comes the first."""
    return of[(of.index(value) + 1) % len(of)] if value in of else of[0]


def chosen_spans(choices: ViewChoices) -> list[Span]:
    """What differs from the ordinary board, with the key that changes it; empty if nothing does."""
    usual = ViewChoices()
    parts = (
        ("N", f"namespace {choices.namespace}", choices.namespace != ""),
        ("/", f"filter {choices.filter}", choices.filter.strip() != ""),
        ("w", f"by {choices.group}", choices.group != usual.group),
        ("o", f"sorted by {choices.sort}", choices.sort != usual.sort),
        ("A", "all tasks", choices.everything),
    )
    spans: list[Span] = []
    for key, words, is_active in parts:
        if is_active:
            spans += [(f" {key}", "key"), (f" {safe(words)} ", "note")]
    return spans
