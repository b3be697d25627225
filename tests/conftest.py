"""What holds for all tests: with CREW_REQUIRE_ALL=1, as in CI, a skip is a failure."""

import os

import pytest
from hypothesis import HealthCheck, settings

# No test depends on speed: a busy machine makes the same examples more slowly.
settings.register_profile("crew", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("crew")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.skipped and os.environ.get("CREW_REQUIRE_ALL") == "1":
        report.outcome = "failed"
        report.longrepr = f"skipped, but everything is required: {report.longrepr}"
    return report
