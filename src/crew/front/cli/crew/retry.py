"""`crew retry`: retries a stuck agent, a failed task or a paused agent kind."""

from crew.domain.requests import Request
from crew.domain.rows.provider import Outage
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.echo import show_agent
from crew.front.cli.output import narrate, print_json
from crew.front.cli.params import subject_argument
from crew.front.cli.resolve_ids import retried
from crew.runner.requests.ask_crew import ask
from crew.runner.views.row_views import outage_view, task_view
from crew.store.fact_log import load_world


@command("retry", example="crew retry A\ncrew retry 12\ncrew retry claude")
@subject_argument()
@pass_call
def retry(call: Call, subject: str) -> None:
    """Retry a stuck agent, a failed task or a paused agent kind.

    An agent that waits after an error tries again at once. An agent kind is paused when it cannot
    work until you fix something, such as its login; `crew inbox` names it. Its tasks wait and
    continue after the retry.
    """
    workplace = call.workplace()
    named = retried(workplace, subject)
    done = str(ask(workplace, Request(verb="retry", args={"subject": named})))
    world = load_world(workplace.db)
    if done in world.agents:
        show_agent(call, workplace, done, f"agent {done} tries again")
    elif done in world.outages:
        _show_kind(call, world.outages[done])
    elif call.json:
        print_json(task_view(workplace.source.show(done), world))
    else:
        narrate(call, f"task {done} is todo again")


def _show_kind(call: Call, outage: Outage) -> None:
    if call.json:
        print_json(outage_view(outage))
    else:
        narrate(call, f"the agent kind {outage.id} is tried again; `crew ps` shows the result")
