"""What holds for all tests: with CREW_REQUIRE_ALL=1, as in CI, a skip is a failure.

A test starts with the signals of a terminal, wherever `make test` runs, and leaves no process.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

from fault_table import ROW, table
from processes import ended_processes, hand_down_no_ignored_signal

# No test depends on speed: a busy machine makes the same examples more slowly.
settings.register_profile("crew", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crew")

hand_down_no_ignored_signal()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind():
    """Set up before and torn down after every other fixture of a test."""
    with ended_processes() as killed:
        yield
    if killed:
        pytest.fail("the test left processes behind, which were killed:\n" + "\n".join(killed))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and os.environ.get("CREW_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, but everything is required: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter):
    """The rows of all fault suites in one table."""
    reports = [report for found in terminalreporter.stats.values() for report in found]
    told = [report for report in reports if getattr(report, "when", "") == "call"]
    rows = [row for report in told for name, row in report.user_properties if name == ROW]
    if rows:
        terminalreporter.section("faults")
        for line in table(rows):
            terminalreporter.write_line(line)


def pytest_collection_modifyitems(items):
    """The longest first: whatever is started last, few wait for it. All else stays as it came."""
    items.sort(key=_limit_s, reverse=True)


def _limit_s(item) -> float:
    """How long a test may take; those that need long have a limit of their own."""
    limit = item.get_closest_marker("timeout")
    return limit.args[0] if limit else 0.0
