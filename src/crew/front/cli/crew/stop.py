"""`crew stop`: stops the runner, or the agent of one task."""

import time

import click

from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import task_argument
from crew.store.runner_lock import StopWatch, find_runner

POLL_S = 0.02


@command("stop", example="crew stop\ncrew stop --now\ncrew stop 12")
@task_argument(required=False)
@click.option("--now", is_flag=True, help="End running steps instead of letting them finish.")
@pass_call
def stop(call: Call, task: str | None, *, now: bool) -> None:
    """Stop the runner, or the agent of one task.

    All state is kept. Running steps finish first; --now ends them. Nothing is lost either way.
    A stopped task is kept as a checkpoint, has the status `error`, and can be started again.
    """
    if task is not None:
        from crew.front.cli.terminal.start import stop_task  # noqa: PLC0415 - loaded when used

        stop_task(call, task)
        return
    workplace = call.workplace()
    holder = find_runner(workplace.lock_file)
    if holder is None:
        _tell(call, None, "no runner is up; nothing to stop")
        return
    from crew.runner.requests.ask_crew import ask  # noqa: PLC0415 - nothing running needs none of it

    if not now:
        narrate(call, "running steps may finish; `crew stop --now` ends them")
    ask(workplace, Request(verb="stop", args={"now": now}))
    watch = StopWatch(workplace.lock_file)
    while (found := find_runner(workplace.lock_file)) and found["pid"] == holder["pid"]:
        watch.check()
        time.sleep(POLL_S)
    _tell(call, holder["pid"], f"runner {holder['pid']} has stopped")


def _tell(call: Call, pid: int | None, words: str) -> None:
    if call.json:
        print_json({"stopped": pid})
    else:
        narrate(call, words)
