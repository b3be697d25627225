"""A process is run to its end with everything it started, and nothing is lost or left."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path

import pytest

from agents.running import (
    DAEMON,
    finish,
    order,
    processes_holding,
    put_clock_forward,
    python,
    run,
    shell_python,
    wait_until,
    written,
)
from crew.system.processes import end_process
from crew.system.processes.ownership import owned_processes
from crew.system.processes.pipes import Talk
from crew.system.processes.process import program_path, run_process


def test_output_code_and_log_of_a_program_come_back(tmp_path, sandbox, marker):
    out = []
    end = run(
        order(
            tmp_path, ("sh", "-c", "echo out; echo err >&2; exit 3"), marker=marker, sandbox=sandbox
        ),
        on_output=out.append,
    )
    assert (end.code, end.reason, end.message, end.stderr_tail) == (3, "exited", "", "err\n")
    assert b"".join(out) == b"out\n"
    assert sorted((tmp_path / "logs/step.log").read_bytes().split()) == [b"err", b"out"]


def test_the_log_is_appended_to(tmp_path, sandbox, marker):
    for word in ("one", "two"):
        run(order(tmp_path, ("echo", word), marker=marker, sandbox=sandbox))
    assert (tmp_path / "logs/step.log").read_text() == "one\ntwo\n"


def test_the_program_runs_in_its_folder_with_exactly_its_environment(tmp_path, sandbox, marker):
    out = []
    end = run(
        order(tmp_path, ("sh", "-c", "pwd; env"), marker=marker, sandbox=sandbox),
        on_output=out.append,
    )
    folder, *variables = b"".join(out).decode().split("\n")
    names = {line.partition("=")[0] for line in variables if line}
    assert end.code == 0
    assert folder == str(tmp_path)
    assert names <= {"PATH", "HOME", "PWD", "OLDPWD", "SHLVL", "_", "CREW_OWNER", "LC_CTYPE"}
    assert f"CREW_OWNER={marker}" in variables


def test_the_pid_that_is_told_is_a_live_process_of_ours(tmp_path, sandbox, marker):
    told = []

    def on_started(pid):
        told.append((pid, os.getpgid(pid) == pid))

    run(order(tmp_path, ("true",), marker=marker, sandbox=sandbox), on_started=on_started)
    assert len(told) == 1
    assert told[0][1], "it leads a group of its own, so a Ctrl-C at the runner does not reach it"


def test_a_large_input_reaches_the_program_byte_for_byte(tmp_path, sandbox, marker):
    sent = os.urandom(300_000)
    run(order(tmp_path, ("sh", "-c", "cat > got"), marker=marker, sandbox=sandbox, stdin=sent))
    assert (tmp_path / "got").read_bytes() == sent


@pytest.mark.parametrize(
    "script", ["exec sleep 0.2", "exec <&-; sleep 0.2", "head -c 10 >/dev/null"]
)
def test_a_program_that_does_not_read_its_input_does_not_hang_us(tmp_path, sandbox, marker, script):
    big = b"x" * 1_000_000
    end = run(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox, stdin=big))
    assert (end.code, end.reason) == (0, "exited")


def test_a_program_that_closes_its_output_early_is_waited_for(tmp_path, sandbox, marker):
    script = "exec >&- 2>&-; sleep 0.3; touch finished; exit 4"
    end = run(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox))
    assert end.code == 4
    assert (tmp_path / "finished").exists()


def test_a_line_of_10_mb_invalid_text_and_nul_bytes_pass_through_unchanged(
    tmp_path, sandbox, marker
):
    source = "import sys; sys.stdout.buffer.write(b'x' * 10_000_000 + b'\\xff\\0\\xc3')"
    size, last = 0, b""

    def on_output(chunk):
        nonlocal size, last
        size, last = size + len(chunk), chunk
        assert len(chunk) <= 65_536

    end = run(order(tmp_path, python(source), marker=marker, sandbox=sandbox), on_output=on_output)
    assert end.code == 0
    assert size == 10_000_003
    assert last.endswith(b"\xff\0\xc3")
    assert (tmp_path / "logs/step.log").stat().st_size == size


def test_a_flood_takes_no_memory(tmp_path, marker):
    """In a process of its own, whose largest size the kernel tells."""
    program = textwrap.dedent(f"""
        import asyncio, resource, sys
        sys.path.insert(0, {str(tmp_path)!r})
        from pathlib import Path
        from crew.system.processes.process import ProcessOrder, run_process
        def largest():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = largest()
        seen = 0
        def on_output(chunk):
            global seen
            seen += len(chunk)
        order = ProcessOrder(
            argv=("head", "-c", "64M", "/dev/zero"), cwd=Path({str(tmp_path)!r}),
            env={{"PATH": {os.environ["PATH"]!r}}}, log=Path("/dev/null"), marker={marker!r},
        )
        asyncio.run(run_process(order, on_started=lambda pid: None, on_output=on_output))
        print(seen, largest() - before)
    """)
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    seen, grown_kib = map(int, ended.stdout.split())
    assert seen == 64 * 1024 * 1024
    assert grown_kib < 24 * 1024


def test_stderr_is_kept_only_at_its_end(tmp_path, sandbox, marker):
    script = "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo the end >&2"
    end = run(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox))
    assert end.stderr_tail.endswith("xthe end\n")
    assert len(end.stderr_tail) <= 16_384


def test_a_silent_program_is_stalled_and_a_busy_one_runs_into_its_limit(tmp_path, sandbox, marker):
    silent = order(tmp_path, ("sleep", "600"), marker=marker, sandbox=sandbox, idle_timeout_s=0.3)
    busy = order(
        tmp_path,
        ("sh", "-c", "while :; do echo .; sleep 0.05; done"),
        marker=marker,
        sandbox=sandbox,
        timeout_s=1.0,
        idle_timeout_s=20.0,
    )
    assert run(silent).reason == "stalled"
    end = run(busy)
    assert end.reason == "timeout"
    assert "1 s" in end.message


def test_output_on_stderr_is_a_sign_of_life(tmp_path, sandbox, marker):
    async def speak(talk, heard):
        for count in (1, 2, 3):
            talk.send(b"\n")
            await until(lambda count=count: written(start.log).count(".") == count)
            put_clock_forward(40.0)
        talk.close()

    script = "while read -r line; do echo . >&2; done"
    start = order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox, timeout_s=6000.0)
    end, _ = talk_with(start, speak)
    assert end.reason == "exited"


def test_a_program_gets_the_chance_to_end_politely(tmp_path, sandbox, marker, monkeypatch):
    monkeypatch.setattr(end_process, "GRACE_S", 60.0)
    out = []
    script = "trap 'touch tidied; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    end = run(
        order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox),
        on_output=out.append,
        late_when=lambda: out,
    )
    assert end.reason == "timeout"
    assert (tmp_path / "tidied").exists()


def test_a_program_that_ignores_sigterm_is_killed(tmp_path, sandbox, marker):
    script = "trap '' TERM; while :; do sleep 0.05; done"
    end = run(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox, timeout_s=0.3))
    assert end.reason == "timeout"
    assert owned_processes(marker) == ()


def test_kill_0_in_a_script_reaches_the_script_and_not_what_watches_over_it(
    tmp_path, sandbox, marker
):
    script = "trap 'sleep 0.3; exit 7' TERM; kill 0; sleep 0.1"
    end = run(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox))
    assert (end.code, end.reason) == (7, "exited")


def test_a_program_killed_by_somebody_else_is_told_as_killed(tmp_path, sandbox, marker):
    end = run(order(tmp_path, ("sh", "-c", "kill -9 $$"), marker=marker, sandbox=sandbox))
    assert (end.code, end.reason) == (137, "killed")


def test_when_the_top_process_itself_is_killed_nothing_is_left(tmp_path, sandbox, marker):
    script = f"{shell_python(DAEMON, tmp_path / 'pid')}; sleep 600"
    start = order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox)

    async def kill_the_top():
        def on_started(pid):
            loop = asyncio.get_running_loop()
            loop.run_in_executor(
                None, wait_until, lambda: written(tmp_path / "pid")
            ).add_done_callback(lambda _: os.kill(pid, signal.SIGKILL))

        return await run_process(start, on_started=on_started, on_output=lambda chunk: None)

    end = asyncio.run(kill_the_top())
    assert end.reason == "killed"
    assert owned_processes(marker) == ()


@pytest.mark.parametrize("scrubbed", [False, True])
def test_a_daemon_is_dead_when_the_step_has_ended_well(tmp_path, sandbox, marker, scrubbed):
    secret = f"seconds-{marker}"
    extra = ("scrubbed",) if scrubbed else ()
    source = DAEMON.replace('time.sleep(600)"]', f'time.sleep(600) # {secret}"]')
    end = run(
        order(tmp_path, python(source, tmp_path / "pid", *extra), marker=marker, sandbox=sandbox)
    )
    assert end.code == 0
    assert written(tmp_path / "pid")
    assert processes_holding(secret) == []
    assert owned_processes(marker) == ()


def test_a_crowd_without_marker_or_parent_is_dead_when_the_step_has_ended(
    tmp_path, sandbox, marker
):
    seconds = f"600.{uuid.uuid4().int}"
    script = f"for i in $(seq 100); do setsid env -i sleep {seconds} & done; sleep 0.2"
    assert run(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox)).code == 0
    assert processes_holding(seconds) == []


def test_a_daemon_is_dead_after_a_timeout(tmp_path, sandbox, marker):
    script = f"{shell_python(DAEMON, tmp_path / 'pid')}; sleep 600"
    end = run(
        order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox, timeout_s=6000.0),
        late_when=lambda: written(tmp_path / "pid"),
    )
    assert end.reason == "stalled"
    assert written(tmp_path / "pid")
    assert owned_processes(marker) == ()


def test_cancelling_ends_the_step_before_it_goes_on(tmp_path, sandbox, marker):
    script = f"trap '' TERM; {shell_python(DAEMON, tmp_path / 'pid')}; while :; do sleep 0.1; done"
    start = order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox)

    async def cancel_it():
        step = asyncio.ensure_future(
            run_process(start, on_started=lambda pid: None, on_output=lambda chunk: None)
        )
        await asyncio.to_thread(wait_until, lambda: written(tmp_path / "pid"))
        step.cancel()
        await asyncio.sleep(0.1)
        step.cancel()  # an impatient second time must not cut the clean-up short
        with pytest.raises(asyncio.CancelledError):
            await step
        return owned_processes(marker)

    assert asyncio.run(cancel_it()) == ()


def test_steps_side_by_side_end_only_their_own(tmp_path, sandbox, marker):
    async def both():
        def start(name, seconds, limit_s):
            return run_process(
                order(
                    tmp_path,
                    ("sh", "-c", f"sleep {seconds} & wait; echo through"),
                    marker=f"{marker}{name}",
                    sandbox=sandbox,
                    timeout_s=limit_s,
                ),
                on_started=lambda pid: None,
                on_output=lambda chunk: None,
            )

        return await asyncio.gather(start("", 600, 0.3), start("1", 3.5, 60))

    short, long = asyncio.run(both())
    assert (short.reason, long.reason) == ("timeout", "exited")


def test_a_missing_program_is_told_by_name(tmp_path, sandbox, marker):
    end = run(order(tmp_path, ("no-such-program",), marker=marker, sandbox=sandbox))
    assert (end.code, end.reason) == (127, "not_found")
    assert "no-such-program" in end.message


def test_a_missing_folder_is_told(tmp_path, sandbox, marker):
    end = run(order(tmp_path, ("true",), marker=marker, sandbox=sandbox, cwd=tmp_path / "gone"))
    assert end.reason == "failed"
    assert "gone" in end.message


@pytest.mark.parametrize("argument", ["x" * 200_000, "a\0b"])
def test_an_argument_that_no_system_takes_is_told(tmp_path, sandbox, marker, argument):
    end = run(order(tmp_path, ("echo", argument), marker=marker, sandbox=sandbox))
    assert end.reason == "failed"
    assert "echo cannot be started" in end.message


def test_a_program_named_by_a_path_is_looked_for_in_its_folder(tmp_path, sandbox, marker):
    (tmp_path / "tool").write_text("#!/bin/sh\nexit 5\n")
    (tmp_path / "tool").chmod(0o755)
    assert run(order(tmp_path, ("./tool",), marker=marker, sandbox=sandbox)).code == 5


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_ends_the_step_with_a_clear_message(tmp_path, sandbox, marker):
    end = run(
        order(
            tmp_path,
            ("sh", "-c", "echo hello; sleep 600"),
            marker=marker,
            sandbox=sandbox,
            log=Path("/dev/full"),
        )
    )
    assert end.reason == "failed"
    assert "No space left on device" in end.message
    assert owned_processes(marker) == ()


def test_a_listener_that_fails_ends_the_step_and_is_heard(tmp_path, sandbox, marker):
    def on_output(chunk):
        raise RuntimeError("cannot take it")

    with pytest.raises(RuntimeError, match="cannot take it"):
        run(
            order(tmp_path, ("sh", "-c", "echo; sleep 600"), marker=marker, sandbox=sandbox),
            on_output=on_output,
        )
    assert owned_processes(marker) == ()


def test_no_file_descriptor_is_left_open(tmp_path, sandbox, marker):
    def open_files():
        return len(list(Path("/proc/self/fd").iterdir()))

    run(order(tmp_path, ("true",), marker=marker, sandbox=sandbox))
    before = open_files()
    for _ in range(3):
        run(order(tmp_path, ("true",), marker=marker, sandbox=sandbox))
    assert open_files() == before


def test_the_program_inherits_no_stray_descriptor_and_no_ignored_sigpipe(tmp_path, sandbox, marker):
    out = []
    script = "ls /proc/self/fd | tr '\\n' ' '; grep SigIgn /proc/self/status"
    run(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox), on_output=out.append)
    descriptors, _, ignored = b"".join(out).decode().partition("SigIgn:")
    assert set(descriptors.split()) <= {"0", "1", "2", "3"}
    assert int(ignored, 16) & (1 << (signal.SIGPIPE - 1)) == 0


RUNNER = """
import asyncio, os, sys
from pathlib import Path
from crew.system.processes.process import ProcessOrder, run_process
order = ProcessOrder(
    argv=("sh", "-c", sys.argv[1]), cwd=Path(sys.argv[2]), env=dict(os.environ),
    log=Path(sys.argv[2]) / "log", marker=sys.argv[3], sandbox=sys.argv[4],
)
asyncio.run(run_process(order, on_started=lambda pid: None, on_output=lambda chunk: None))
"""


def test_when_the_runner_is_killed_the_step_dies_by_itself(tmp_path, sandbox, marker):
    script = f"{shell_python(DAEMON, tmp_path / 'pid')}; sleep 600"
    runner = subprocess.Popen(
        [sys.executable, "-c", RUNNER, script, str(tmp_path), marker, sandbox]
    )
    wait_until(lambda: written(tmp_path / "pid"))
    assert owned_processes(marker)
    runner.kill()
    runner.wait()
    wait_until(lambda: owned_processes(marker) == ())


def test_a_program_is_found_on_the_path_it_will_have(tmp_path):
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    assert program_path("tool", {"PATH": str(tmp_path)}) == str(tmp_path / "tool")
    assert program_path("tool", {"PATH": "/nowhere"}) is None


def talk_with(process_order, speak):
    """Run a program while `speak(talk, heard)` talks with it; how it ended and what it said."""
    heard = bytearray()

    async def both():
        talk = Talk()
        running = asyncio.ensure_future(
            run_process(
                process_order, on_started=lambda pid: None, on_output=heard.extend, talk=talk
            )
        )
        speaking = asyncio.ensure_future(speak(talk, heard))
        end = await running
        speaking.cancel()
        await asyncio.gather(speaking, return_exceptions=True)
        return end

    return finish(both()), bytes(heard)


async def until(condition):
    await asyncio.to_thread(wait_until, condition)


def test_a_program_can_be_spoken_to_while_it_runs(tmp_path, sandbox, marker):
    async def speak(talk, heard):
        talk.send(b"one\n")
        await until(lambda: b"got one" in heard)
        talk.send(b"two\n")
        await until(lambda: b"got two" in heard)
        talk.close()
        talk.send(b"after the end\n")

    script = "while read -r line; do echo got $line; done; echo the end"
    end, heard = talk_with(
        order(tmp_path, ("sh", "-c", script), marker=marker, sandbox=sandbox), speak
    )
    assert (end.code, end.reason) == (0, "exited")
    assert heard == b"got one\ngot two\nthe end\n"


def test_much_that_is_said_and_much_that_is_answered_do_not_wait_for_each_other(tmp_path, marker):
    line = b"x" * 99_999 + b"\n"

    async def speak(talk, heard):
        for _ in range(40):
            talk.send(line)
            await talk.taken()
        talk.close()

    end, heard = talk_with(order(tmp_path, ("cat",), marker=marker), speak)
    assert (end.code, len(heard)) == (0, 40 * len(line))


def test_whoever_speaks_is_held_up_by_a_program_that_does_not_listen(tmp_path, marker):
    said = []

    async def speak(talk, heard):
        await until(lambda: b"up" in heard)
        while not talk.is_closed:
            talk.send(b"x" * 50_000)
            await talk.taken()
            said.append(talk.is_closed)

    end, _ = talk_with(
        order(tmp_path, ("sh", "-c", "echo up; sleep 1"), marker=marker, sandbox="off"), speak
    )
    assert end.code == 0
    assert said.count(False) < 10


def test_words_for_a_program_that_has_closed_its_input_are_dropped(tmp_path, marker):
    async def speak(talk, heard):
        await until(lambda: b"deaf" in heard)
        for _ in range(10):
            talk.send(b"x" * 100_000)
            await talk.taken()

    script = "exec <&-; echo deaf; sleep 0.5; exit 6"
    end, _ = talk_with(order(tmp_path, ("sh", "-c", script), marker=marker, sandbox="off"), speak)
    assert (end.code, end.reason) == (6, "exited")


def test_a_program_that_goes_on_after_its_input_has_ended_is_ended(tmp_path, sandbox, marker):
    async def speak(talk, heard):
        await until(lambda: b"up" in heard)
        talk.close(linger_s=0.2)

    end, _ = talk_with(
        order(tmp_path, ("sh", "-c", "echo up; sleep 600"), marker=marker, sandbox=sandbox), speak
    )
    assert end.reason == "lingered"
    assert owned_processes(marker) == ()


def test_silence_while_somebody_decides_what_to_answer_is_no_stall(tmp_path, marker):
    async def speak(talk, heard):
        with talk.waiting():
            await until(lambda: b"up" in heard)
            put_clock_forward(100.0)
            await asyncio.sleep(0.1)  # a limit that counts is noticed now
        talk.send(b"yes\n")
        talk.close()

    end, heard = talk_with(
        order(
            tmp_path,
            ("sh", "-c", "echo up; read -r line; echo $line"),
            marker=marker,
            timeout_s=6000.0,
        ),
        speak,
    )
    assert (end.reason, heard) == ("exited", b"up\nyes\n")


def test_an_answer_that_was_given_does_not_keep_a_silent_program_alive(tmp_path, marker):
    async def speak(talk, heard):
        with talk.waiting():
            await until(lambda: b"up" in heard)

    end, _ = talk_with(
        order(tmp_path, ("sh", "-c", "echo up; sleep 600"), marker=marker, idle_timeout_s=0.5),
        speak,
    )
    assert end.reason == "stalled"
