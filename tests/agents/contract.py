"""What is true of every adapter, told once and run against each with a program of its own.

A stage lets an agent say something, run a shell script, or exit with a code. Each adapter's test
module makes a stage and inherits these beliefs. `StreamContract` has more of them, for CLIs that
tell events and say when they have finished.
"""

import asyncio
import os
import shlex
from dataclasses import replace
from typing import ClassVar

import pytest

from agents.conftest import need
from agents.running import DAEMON, finish, shell_python, wait_until, written
from crew.agents.adapter import Controls, StepOrder, Watch, adapter_for
from crew.domain.rows.step import ErrorKind
from crew.system.processes.ownership import owned_processes
from crew.system.processes.process import working_bwrap

SILENT = Watch(started=lambda pid: None, doing=lambda text: None)


def say(text):
    return ("say", text)


def shell(script):
    return ("shell", script)


def leave(code):
    return ("exit", code)


def run_step(adapter, order, watch=SILENT, controls=None, **late):
    return finish(adapter.run_step(order, watch, controls), **late)


def run_and_tell(adapter, order, watch, *, when, words):
    """Run a step, and tell it each of the words once the file `when` is there."""

    async def run():
        controls = Controls()
        step = asyncio.ensure_future(adapter.run_step(order, watch, controls))
        await asyncio.to_thread(wait_until, lambda: written(when) or step.done())
        for word in words:
            controls.send(word)
        return await step

    return asyncio.run(run())


@pytest.fixture
def order(tmp_path, marker):
    (tmp_path / "worktree").mkdir()
    return StepOrder(
        key="run-1/1/1/1",
        agent="A",
        kind="any",
        worktree=tmp_path / "worktree",
        prompt="do it",
        session="6a2f41a3-c54c-4e5b-a1f0-5b8a2f6fbb10",
        resume=False,
        log=tmp_path / "logs" / "1.log",
        timeout_s=60.0,
        idle_timeout_s=60.0,
        env={"CREW_TASK_ID": "7", "CREW_OWNER": marker},
    )


class AdapterContract:
    """Inherit, and give a fixture `stage`: acts in, an AgentSpec that performs them out."""

    @pytest.fixture(params=["bwrap", "off"])
    def play(self, request, stage):
        """The adapter for some acts, in both kinds of sandbox."""
        if request.param == "bwrap":
            need(working_bwrap(), "bwrap")

        def play(*acts):
            caller = {**os.environ, "GITHUB_TOKEN": "secret"}
            return adapter_for(replace(stage(*acts), sandbox=request.param), caller=caller)

        return play

    def test_a_good_step_has_words_no_error_and_its_session(self, play, order):
        outcome = run_step(play(say("working on it"), say("more")), order)
        assert outcome.error is None
        assert not outcome.done
        assert outcome.text.split("\n")[-3:] == ["working on it", "more", ""]
        assert outcome.session == order.session

    def test_the_done_word_alone_on_a_line_means_done(self, play, order):
        assert run_step(play(say("finished:\nDONE")), order).done

    def test_the_done_word_within_a_sentence_means_nothing(self, play, order):
        assert not run_step(play(say("I am DONE"), say("DONE?")), order).done

    def test_another_done_word_can_be_agreed(self, play, order):
        outcome = run_step(play(say("DONE"), say("FERTIG")), replace(order, done_word="FERTIG"))
        assert outcome.done

    def test_an_exit_code_is_an_error_even_after_good_words(self, play, order):
        outcome = run_step(play(say("DONE"), leave(3)), order)
        assert outcome.error.kind is ErrorKind.CRASHED
        assert "3" in outcome.error.message

    def test_silence_is_stalled(self, play, order):
        step = replace(order, idle_timeout_s=1.5)
        outcome = run_step(play(shell("sleep 600")), step)
        assert outcome.error.kind is ErrorKind.STALLED

    def test_too_long_is_a_timeout(self, play, order):
        step = replace(order, timeout_s=1.5)
        outcome = run_step(play(shell("sleep 600")), step)
        assert outcome.error.kind is ErrorKind.TIMEOUT

    def test_it_works_in_its_worktree_with_its_variables_and_without_our_keys(self, play, order):
        run_step(play(shell("env > found; cat $CREW_PROMPT_FILE > prompt")), order)
        found = (order.worktree / "found").read_text().splitlines()
        assert "CREW_TASK_ID=7" in found
        assert f"CREW_SESSION={order.session}" in found
        assert not [line for line in found if "secret" in line]
        assert (order.worktree / "prompt").read_text() == "do it"

    def test_a_resumed_session_is_told_as_such(self, play, order):
        run_step(play(shell("echo $CREW_RESUME > found")), replace(order, resume=True))
        assert (order.worktree / "found").read_text() == "1\n"

    def test_a_daemon_does_not_outlive_its_step(self, play, order, marker):
        pid = order.worktree / "pid"
        outcome = run_step(play(shell(shell_python(DAEMON, pid)), say("DONE")), order)
        assert outcome.error is None
        assert written(pid)
        assert owned_processes(marker) == ()

    def test_cancelling_leaves_nothing(self, play, order, marker):
        async def cancel():
            step = asyncio.ensure_future(
                play(shell("echo up > up; sleep 600")).run_step(order, SILENT)
            )
            await asyncio.to_thread(wait_until, lambda: written(order.worktree / "up"))
            step.cancel()
            with pytest.raises(asyncio.CancelledError):
                await step

        asyncio.run(cancel())
        assert owned_processes(marker) == ()

    def test_whoever_watches_hears_of_the_start_and_of_what_it_is_doing(self, play, order):
        pids, lines = [], []
        watch = Watch(started=pids.append, doing=lines.append)
        run_step(play(say("looking \x1b[2Jaround\nin detail")), order, watch)
        assert len(pids) == 1
        assert lines
        assert all("\x1b" not in line and "\n" not in line and len(line) <= 120 for line in lines)

    def test_a_worktree_that_is_gone_is_an_error_not_an_exception(self, play, order):
        outcome = run_step(play(say("x")), replace(order, worktree=order.worktree / "gone"))
        assert outcome.error.kind is ErrorKind.CRASHED
        assert "gone" in outcome.error.message

    def test_a_log_that_cannot_be_written_is_an_error_not_an_exception(self, play, order):
        (order.log.parent).write_text("in the way")
        outcome = run_step(play(say("x")), order)
        assert outcome.error.kind is ErrorKind.CRASHED
        assert "written" in outcome.error.message

    def test_a_line_of_ten_megabytes_does_no_harm(self, play, order):
        flood = shell("head -c 10000000 /dev/zero | tr '\\0' x; echo")
        outcome = run_step(play(flood, say("DONE")), order)
        assert (outcome.error, outcome.done) == (None, True)

    def test_bytes_that_are_no_text_do_no_harm(self, play, order):
        outcome = run_step(play(shell("printf '\\377\\376{\\000\\n'"), say("DONE")), order)
        assert (outcome.error, outcome.done) == (None, True)
        outcome.text.encode()

    def test_a_program_that_is_killed_is_a_crash_and_what_it_said_is_kept(self, play, order):
        outcome = run_step(play(say("half of it"), leave(137)), order)
        assert outcome.error.kind is ErrorKind.CRASHED
        assert "SIGKILL" in outcome.error.message
        assert "half of it" in outcome.text

    def test_a_long_prompt_arrives_byte_for_byte(self, play, order):
        prompt = "do $(it) 'now' \\ \t\"ü\"\r\n" * 8_000
        assert len(prompt) > 180_000
        outcome = run_step(
            play(shell("cp $CREW_PROMPT_FILE prompt")), replace(order, prompt=prompt)
        )
        assert outcome.error is None
        assert (order.worktree / "prompt").read_bytes() == prompt.encode()


class StreamContract(AdapterContract):
    """For CLIs that tell events; give also `heard_prompt` and the table `FAILURES`.

    A stage's program keeps the prompt it was given; `heard_prompt` finds it. A failure is a kind,
    and the acts, or lines, code and stderr that `fake` plays.
    """

    FAILURES: ClassVar[dict[str, tuple[ErrorKind, dict[str, object]]]] = {}

    def pytest_generate_tests(self, metafunc):
        if "failure" in metafunc.fixturenames:
            metafunc.parametrize("failure", self.FAILURES)

    def test_each_failure_has_its_kind_and_a_sentence(self, fake, order, failure):
        kind, played = self.FAILURES[failure]
        outcome = run_step(fake(**{"code": 1, **played}), order)
        assert outcome.error.kind is kind, outcome.error
        assert len(outcome.error.message) > 10
        assert "\n" not in outcome.error.message
        assert "<unknown>" not in outcome.error.message

    def test_what_a_person_cannot_know_is_not_claimed(self, play, order):
        assert run_step(play(say("hello")), order).usage.cost_usd is None

    def test_its_own_way_to_take_a_prompt_changes_no_byte(self, play, order, heard_prompt):
        prompt = "do $(it) 'now' \\ \t\"ü\"\r\n" * 8_000
        assert run_step(play(say("x")), replace(order, prompt=prompt)).error is None
        assert heard_prompt() == prompt

    def test_the_end_without_its_last_event_is_a_crash(self, play, order):
        outcome = run_step(play(say("DONE"), leave(0)), order)
        assert outcome.error.kind is ErrorKind.CRASHED

    def test_half_an_event_at_the_end_is_none(self, play, order):
        outcome = run_step(play(say("x"), shell('printf \'{"type":"res\''), leave(0)), order)
        assert outcome.error.kind is ErrorKind.CRASHED

    def test_lines_it_does_not_know_do_no_harm(self, play, order):
        noise = ["not json", "[]", "null", '{"type":"new"}', '{"method":5,"id":[]}', "[" * 100_000]
        lines = "\n".join(f"echo {shlex.quote(line)}" for line in noise)
        outcome = run_step(play(shell(lines), say("DONE")), order)
        assert (outcome.error, outcome.done) == (None, True)

    def test_two_messages_do_not_make_one_word(self, play, order):
        assert not run_step(play(say("DO"), say("NE")), order).done

    def test_words_of_the_agent_about_errors_are_not_errors(self, play, order):
        words = "401 Unauthorized, Quota exceeded, no rollout found, Session not found, Error: 429"
        assert run_step(play(say(words)), order).error is None

    def test_a_missing_program_is_named(self, stage, order):
        adapter = adapter_for(replace(stage(), command="no-such-program"))
        error = run_step(adapter, order).error
        assert error.kind is ErrorKind.NOT_INSTALLED
        assert "no-such-program" in error.message


def replaying(folder, name, *lines, code=0, stderr="", script=""):
    """A program that plays recorded lines; what it was told, it keeps beside itself."""
    folder.mkdir(exist_ok=True)
    (folder / "events").write_text("".join(f"{line}\n" for line in lines))
    (folder / "stderr").write_text(stderr)
    here = shlex.quote(str(folder))
    return program(
        folder / name,
        f"printf '%s\\n' \"$@\" > {here}/argv\ncat > {here}/stdin\n"
        f"{script}\ncat {here}/events\ncat {here}/stderr >&2\nexit {code}\n",
    )


def program(path, script, *, interpreter="/bin/sh"):
    path.write_text(f"#!{interpreter}\n{script}")
    path.chmod(0o755)
    return path


def told(folder):
    """The arguments that a replaying program was started with."""
    return (folder / "argv").read_text().splitlines()


def shell_lines(acts, speak):
    """A shell script that performs acts; `speak` makes the line that says a text."""
    lines = []
    for kind, value in acts:
        if kind == "say":
            lines.append(f"printf '%s\\n' {shlex.quote(speak(value))}")
        else:
            lines.append(f"exit {value}" if kind == "exit" else value)
    return "\n".join(lines) + "\n"
