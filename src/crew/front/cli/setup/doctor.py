"""`crew doctor`: checks everything that crew needs, and prints how to fix each problem."""

import click

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
    findings = list(examine(call.workplace, repair=repair))
    if call.json:
        print_json([_view(finding) for finding in findings])
    else:
        for finding in findings:
            _print(call, finding)
    return int(any(finding.is_wrong for finding in findings))


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
