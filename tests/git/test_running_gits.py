"""Other people's git commands in a folder are told from crew's own, by their parents."""

import os
import subprocess
import sys

import pytest

from crew.git.delivery import running_gits

CHILD = "import subprocess, sys; subprocess.run(['sleep', '60'])"


def test_a_process_is_ours_if_one_above_it_is():
    parent = subprocess.Popen([sys.executable, "-c", CHILD])
    try:
        children = f"/proc/{parent.pid}/task/{parent.pid}/children"
        found: list[str] = []
        while not found:
            with open(children) as file:  # noqa: PTH123 - a file of the kernel
                found = file.read().split()
        assert running_gits._is_ours(int(found[0]))
        assert running_gits._is_ours(parent.pid)
        os.kill(int(found[0]), 9)
    finally:
        parent.kill()
        parent.wait()
    assert not running_gits._is_ours(parent.pid)  # it is gone, and so is its parent's name


@pytest.mark.parametrize("pid", [0, 1, os.getppid()])
def test_processes_above_us_are_not_ours(pid):
    assert not running_gits._is_ours(pid)


def test_a_process_that_is_gone_is_young_and_works_nowhere():
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert running_gits._age_s(gone.pid) == running_gits.YOUNG_S
    assert not running_gits._works_in(gone.pid, "/")
    assert not running_gits._counts(gone.pid)
    assert 0 <= running_gits._age_s(os.getpid()) < running_gits._age_s(1)
