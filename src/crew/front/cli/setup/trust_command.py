"""`crew trust`: shows the configuration that commits propose, and approves it."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from crew.domain.kernel.errors import UsageError
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, painted, print_json, say
from crew.front.cli.params import confirm, yes_option
from crew.runner.requests.ask_crew import wake
from crew.runner.views.proposal_views import change_lines, key_names, proposal_view
from crew.trusted_config import approve, proposals, revoke

if TYPE_CHECKING:
    from crew.config.trust.proposals import Proposal
    from crew.workplace import Workplace


@command("trust", example="crew trust\ncrew trust --show --json\ncrew trust --yes")
@click.option("--show", is_flag=True, help="Print what waits for approval, and change nothing.")
@click.option("--revoke", "revoked", is_flag=True, help="Forget all approvals.")
@yes_option
@pass_call
def trust(call: Call, *, show: bool, revoked: bool, yes: bool) -> None:
    """Approve the configuration that a commit brought.

    In a config file that git tracks, values that run a program or loosen a limit (agents, the gate,
    reviews, notices, the sandbox, …) take effect only once you approve them. Until then, the values
    that you approved before stay in effect. A file that git does not track, and `crew config set`,
    need no approval.
    """
    if show and (revoked or yes):
        raise UsageError("--show changes nothing", hint="leave out --show, or the other option")
    workplace = call.workplace()
    found = proposals(workplace.root)
    if revoked:
        _revoke(call, workplace, yes=yes)
    elif show or not found:
        _print(call, found)
    else:
        _approve(call, workplace, found, yes=yes)


def _approve(
    call: Call, workplace: "Workplace", found: "tuple[Proposal, ...]", *, yes: bool
) -> None:
    show_changes(call, found)
    if not confirm("Approve all of this?", yes=yes):
        _tell(call, found, is_approved=False)
        return
    approve(workplace.root)
    wake(workplace)
    _tell(call, found, is_approved=True)


def _tell(call: Call, found: "tuple[Proposal, ...]", *, is_approved: bool) -> None:
    if call.json:
        print_json(_document(found, is_approved=is_approved))
    elif is_approved:
        narrate(
            call, "approved; a runner that is up uses new agents now, the rest when it restarts"
        )
    else:
        narrate(call, "nothing was approved: the values that you approved before stay in effect")


def _revoke(call: Call, workplace: "Workplace", *, yes: bool) -> None:
    if confirm("Forget all approvals?", yes=yes):
        revoke(workplace.root)
    else:
        narrate(call, "nothing was forgotten")
    _print(call, proposals(workplace.root))


def _print(call: Call, found: "tuple[Proposal, ...]") -> None:
    if call.json:
        print_json(_document(found, is_approved=not found))
        return
    if not found:
        say("the configuration is approved: no commit proposes a change")
        return
    for text in _lines(call, found):
        say(text)
    narrate(call, "`crew trust` approves it; until then the values marked - stay in effect")


def _document(found: "tuple[Proposal, ...]", *, is_approved: bool) -> dict[str, object]:
    return {"approved": is_approved, "files": [proposal_view(one) for one in found]}


def show_changes(call: Call, found: "tuple[Proposal, ...]") -> None:
    for text in _lines(call, found):
        narrate(call, text)


def _lines(call: Call, found: "tuple[Proposal, ...]") -> Iterator[str]:
    colours = {"-": "red", "+": "green"}
    for one in found:
        for text in change_lines(one):
            yield painted(text, colours.get(text[:1], "bold"), call)


def ask_for_trust(call: Call, workplace: "Workplace") -> None:
    """Before a run: ask a person at a terminal to approve what waits, or print that it waits."""
    found = proposals(workplace.root)
    if not found:
        return
    if sys.stdin.isatty() and call.is_live and not call.json:
        show_changes(call, found)
        if click.confirm("Commits changed the configuration. Approve all of this?", err=True):
            approve(workplace.root)
            return
    tell_waiting(call, found)


def tell_waiting(call: Call, found: "tuple[Proposal, ...]") -> None:
    if found:
        words = "a person must approve it (`crew trust`); until then crew runs without it"
        narrate(call, f"warning: a commit brought {key_names(found)}: {words}")
