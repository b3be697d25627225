"""`crew doctor`: checks everything that crew needs, and prints how to fix each problem."""

from collections.abc import Iterator

import click

from crew.domain.kernel.errors import CrewError
from crew.domain.upkeep.findings import Finding
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import line, painted, print_json, say
from crew.runner.upkeep.doctor_checks import examine


@command("doctor", example="crew doctor\ncrew doctor --repair")
@click.option(
    "--repair",
    is_flag=True,
    help="Repair what is safe to repair: rows, processes, worktrees, locks.",
)
@pass_call
def doctor(call: Call, *, repair: bool) -> int:
    """Check everything that crew needs.

    Each problem is printed with its fix. Exit code 1 if there is one.
    """
    findings = [*examine(call.workplace, repair=repair), *_keys(call)]
    if call.json:
        print_json([_view(finding) for finding in findings])
    else:
        for finding in findings:
            _print(call, finding)
    return int(any(finding.is_wrong for finding in findings))


def _keys(call: Call) -> Iterator[Finding]:
    """The keys of `[tui.keybindings]` that the terminal view has too."""
    try:
        bindings = call.workplace().settings.tui.keybindings
    except CrewError:  # another check names it
        return
    if not bindings:
        return
    from crew.front.tui.actions.action_table import ACTIONS  # noqa: PLC0415 - few people bind keys
    from crew.front.tui.actions.custom_keys import clashes  # noqa: PLC0415
    from crew.front.tui.actions.help_sections import built_in_keys  # noqa: PLC0415

    found = list(clashes(bindings, built_in_keys(ACTIONS)))
    for message in found:
        fix = "crew config set tui.keybindings.KEY.override true"
        yield Finding(check="keys", message=message, fix=fix, is_wrong=True)
    if not found:
        yield Finding(check="keys", message=f"{len(bindings)} own keys of the terminal view")


def _view(finding: Finding) -> dict[str, object]:
    state = "wrong" if finding.is_wrong else "repaired" if finding.is_repaired else "ok"
    return {
        "check": finding.check,
        "state": state,
        "message": finding.message,
        "fix": finding.fix or None,
    }


def _print(call: Call, finding: Finding) -> None:
    mark, colour = ("✗", "red") if finding.is_wrong else ("✓", "green")
    if finding.is_repaired:
        mark, colour = "✓ repaired:", "yellow"
    elif finding.fix and not finding.is_wrong:
        mark, colour = "·", "yellow"
    say(f"{painted(mark, colour, call)} {line(finding.message)}")
    if finding.fix and not finding.is_repaired:
        say(f"    fix: {finding.fix}")
