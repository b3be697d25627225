"""`crew retry`: retries a stuck agent or a failed task."""

from crew.domain.requests import Request
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_agent
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import subject_argument
from crew.front.cli.resolve_ids import retried
from crew.runner.requests.ask_crew import ask
from crew.runner.views.row_views import task_view
from crew.store.fact_log import load_world


@command("retry", example="crew retry A\ncrew retry 12")
@subject_argument()
@pass_call
def retry(call: Call, subject: str) -> None:
    """Retry a stuck agent or a failed task."""
    workplace = call.workplace()
    named = retried(workplace, subject)
    done = str(ask(workplace, Request(verb="retry", args={"subject": named})))
    world = load_world(workplace.db)
    if done in world.agents:
        show_agent(call, workplace, done, f"agent {done} tries again")
    elif call.json:
        print_json(task_view(workplace.source.show(done), world))
    else:
        narrate(call, f"task {done} is todo again")
