"""The seal around a sandbox: the kernel's filter read step by step, and what a thread keeps."""

import os
import struct
import subprocess
import sys

import pytest

from agents.conftest import need
from crew.system.processes.process import load_wrapper, working_bwrap
from crew.system.processes.sealed_start import sealed
from crew.system.sandbox import seal
from crew.system.sandbox.allowed import Allowed
from crew.system.sandbox.seal import KEYS, keys_filter

X86_64, AARCH64, I386, ARM, RISCV = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028, 0xC00000F3
X32 = 0x40000000
ALLOWED, EPERM = 0x7FFF0000, 0x00050001

ADD_KEY = "import ctypes; c = ctypes.CDLL(None, use_errno=True); "
ADD_KEY += f"c.syscall({250 if os.uname().machine == 'x86_64' else 219}, 0, -3, 0); "
ADD_KEY += "print(ctypes.get_errno())"
"""`keyctl(KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0)`, and the error it ended with."""


def answer(kind, number):
    """What the kernel's filter answers to a system call, as the kernel computes it."""
    steps = list(struct.iter_unpack("=HBBI", keys_filter()))
    at, value = 0, 0
    while True:
        code, yes, no, operand = steps[at]
        match code:
            case 0x20:
                value = {0: number, 4: kind}[operand]
            case 0x54:
                value &= operand
            case 0x15 | 0x35 | 0x25:
                is_so = {0x15: value == operand, 0x35: value >= operand, 0x25: value > operand}
                at += yes if is_so[code] else no
            case 0x06:
                return operand
        at += 1


@pytest.mark.parametrize(
    ("kind", "first"),
    [(X86_64, 248), (X86_64, X32 | 248), (AARCH64, 217), (I386, 286), (ARM, 309)],
)
def test_the_three_calls_about_keys_are_denied_and_their_neighbours_are_not(kind, first):
    denied = [number for number in range(first - 5, first + 9) if answer(kind, number) == EPERM]
    assert denied == [first, first + 1, first + 2]
    assert {answer(kind, number) for number in (0, first - 1, first + 3, 2**32 - 1)} == {ALLOWED}


def test_another_kind_of_machine_is_not_filtered():
    assert {answer(RISCV, number) for number in range(500)} == {ALLOWED}


def test_the_filter_is_small_and_known_by_its_bytes():
    assert len(keys_filter()) == 33 * 8
    assert keys_filter()[:64].hex(" ", 8).split() == [
        *("2000000004000000", "150000063e0000c0", "2000000000000000", "54000000ffffffbf"),
        *("35000002f8000000", "25000100fa000000", "0600000001000500", "060000000000ff7f"),
    ]


def error_of_keys(*before):
    argv = (*before, sys.executable, "-c", ADD_KEY)
    return int(subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout)


@pytest.fixture
def closing_keys():
    need(working_bwrap(), "bwrap")
    if KEYS not in load_wrapper("auto", Allowed()).closed:
        pytest.skip("the keys cannot be closed on this machine")


def test_only_what_the_sealed_thread_starts_is_sealed(closing_keys):
    before = error_of_keys()
    assert sealed(error_of_keys) == 1
    assert error_of_keys() == before != 1
    assert error_of_keys(sys.executable, "-I", "-S", seal.__file__) == 1


def test_a_fork_of_a_process_with_a_sealed_thread_seals_too(closing_keys):
    assert sealed(lambda: 3) == 3
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = 0 if sealed(error_of_keys) == 1 else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_error_in_the_sealed_thread_is_raised_where_it_was_asked():
    with pytest.raises(FileNotFoundError):
        sealed(lambda: subprocess.run(["/missing"], check=False))


def test_a_program_that_does_not_exist_is_told():
    argv = (sys.executable, "-I", "-S", seal.__file__, "/missing")
    done = subprocess.run(argv, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (127, b"/missing: No such file or directory\n")


def test_no_seal_is_claimed_where_the_kernel_has_none(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(seal, "_call", lambda *_: -1)
        assert seal.seal_thread() == frozenset()
        patch.setattr(seal, "_call", lambda name, *_: 0 if name == "prctl" else 5)
        patch.setattr(os, "uname", lambda: type("Machine", (), {"machine": "riscv64"}))
        assert seal.seal_thread() == frozenset()
        patch.setattr(sys, "platform", "darwin")
        assert seal.seal_thread() == frozenset()
