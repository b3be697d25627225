"""What a test sees of the machine: a home of its own, and nothing of the caller's configuration."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

ANN = "[user]\n\tname = Ann\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n"
QUICK = "[core]\n\tfsync = none\n[gc]\n\tauto = 0\n"

_THE_CALLERS = ("GIT_", "CREW_", "_CREW", "NO_COLOR", "FORCE_COLOR")
_FOR_TESTS = {"CREW_REQUIRE_ALL", "CREW_SEED", "CREW_FAULTS", "CREW_FAULTS_TASKS"}


@contextmanager
def own_home(made_by: pytest.TempPathFactory, git_config: str = ANN) -> Iterator[None]:
    home = made_by.mktemp("home")
    (home / ".gitconfig").write_text(git_config)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_THE_CALLERS) and name not in _FOR_TESTS:
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        # Scripted agents keep their records next to the repository.
        patch.setenv("CREW_SANDBOX_ALLOW_WRITE", str(made_by.getbasetemp()))
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        yield
