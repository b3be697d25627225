"""The actions that change a task, such as new, edit, status, close, merge, block and delete."""

from typing import TYPE_CHECKING

from crew.domain.rows.task import FINISHED
from crew.front.tui.actions.background_thread import in_background
from crew.front.tui.actions.session_actions import agents_of, kind_choices
from crew.front.tui.board.task_as_text import changes_to, task_block
from crew.front.tui.dialogs.choice import Choice
from crew.workplace import Workplace

if TYPE_CHECKING:
    from crew.front.tui.dialogs.task_form import TaskWish
    from crew.front.tui.view_app import CrewView


async def new(view: "CrewView") -> None:
    """Ask for the fields of a task and make it; after a refusal the form is shown again."""
    from crew.front.tui.dialogs.task_form import TaskForm, TaskWish  # noqa: PLC0415 - Textual is an extra

    settings = await agents_of(view)
    kinds = [one.value for one in kind_choices(settings, settings.worker_default)]
    wish: TaskWish | None = TaskWish()
    while wish is not None:
        wish = await view.push_screen_wait(TaskForm("New task", wish, kinds=kinds))
        if wish is None:
            return
        reply = await view.command(*_new_args(wish), stdin=wish.body, done="the task is made")
        if not reply.is_refused:
            view.go_to_task(str(reply.document["id"]))
            return


def _new_args(wish: "TaskWish") -> list[str]:
    lists = (("label", _words(wish.labels)), ("after", _words(wish.after)))
    single = (("agent", wish.agent.strip()), ("priority", wish.priority.strip()))
    flags = [(flag, value) for flag, values in lists for value in values]
    flags += [(flag, value) for flag, value in single if value]
    given = [f"--{flag}={value}" for flag, value in flags]
    return ["new", f"--title={wish.title.strip()}", "--body=-", *given]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


async def edit(view: "CrewView") -> None:
    """Change the task in the person's editor; a refused text can be edited again."""
    from crew.runner.by_hand.person_editor import edit_text  # noqa: PLC0415 - the view opens sooner

    item = view.picture.items.get(view.chosen_task)
    if item is None:
        return
    before = task_block(item)
    text: str | None = before
    while text is not None:
        text = view.hand_over_terminal(edit_text, text, name=f"task-{item.id}.md")
        changes = changes_to(before, text) if text is not None else None
        if text is None or changes is None:
            view.notify("nothing was changed")
            return
        args = ("edit", item.id, "--from=-", *changes.flags)
        reply = await view.command(*args, stdin=changes.block, done=f"task {item.id} is changed")
        if not reply.is_refused or not await view.confirm(f"{reply.failure}\nEdit it again?"):
            return


async def status(view: "CrewView") -> None:
    from crew.front.cli.tasks.edit import MOVES  # noqa: PLC0415 - the view opens sooner

    task = view.chosen_task
    now = view.picture.status_of(task)
    choices = [Choice(value=after, title=after) for before, after in MOVES if before == now]
    if not choices:
        view.notify(f"task {task} is {now}, which is final", severity="warning")
        return
    chosen = await view.choose(f"Status of task {task}, which is {now}", choices)
    if chosen is not None:
        args = (f"--status={chosen}", f"--if-status={now}", "--", task)
        await view.command("edit", *args, done=f"task {task} is {chosen}")


async def close(view: "CrewView") -> None:
    task = view.chosen_task
    reason = await view.write(f"Close task {task} without merging it. Why? (may stay empty)")
    if reason is not None:
        args = (f"--reason={reason.strip()}", "--", task)
        await view.command("close", *args, done=f"task {task} is closed")


async def delete(view: "CrewView") -> None:
    task = view.chosen_task
    if await view.confirm(f"Delete task {task}: {view.picture.title_of(task)}?"):
        await view.command("rm", "--yes", "--", task, done=f"task {task} is deleted")


async def merge(view: "CrewView") -> None:
    task = view.chosen_task
    if await view.confirm(f"Merge task {task} now: {view.picture.title_of(task)}?"):
        await view.command("merge", "--", task, done=f"task {task} is merged or in the queue")


async def request_changes(view: "CrewView") -> None:
    task = view.chosen_task
    title = f"What must change in task {task}? It goes back to its agent with this text."
    words = await view.write(title, several_lines=True)
    if words and words.strip():
        args = ("comment", "--request-changes", "--", task, "-")
        await view.command(*args, stdin=words, done=f"task {task} is sent back")


async def block(view: "CrewView") -> None:
    """Let the task wait for another one, or no longer wait."""
    task = view.chosen_task
    items = view.picture.items
    deps = items[task].deps if task in items else ()
    others = [one for one in items if one != task and view.picture.status_of(one) not in FINISHED]
    choices = [_dependency(view, one, is_dep=True) for one in deps]
    choices += [_dependency(view, one, is_dep=False) for one in others if one not in deps]
    if not choices:
        view.notify("there is no other open task", severity="warning")
        return
    title = f"Which task does task {task} wait for?"
    chosen = await view.choose(title, choices, searchable=True)
    if chosen is None:
        return
    if chosen in deps:
        done = f"task {task} no longer waits for {chosen}"
        await view.command("undep", "--", task, chosen, done=done)
    else:
        await view.command("dep", "--", task, chosen, done=f"task {task} waits for {chosen}")


def _dependency(view: "CrewView", task: str, *, is_dep: bool) -> Choice:
    about = "it waits for this one: choose it to end that" if is_dep else ""
    return Choice(value=task, title=f"{task} {view.picture.title_of(task)}", about=about)


async def pull_request(view: "CrewView") -> None:
    """Push the branch of the task and open a pull request, after a confirmation."""
    from crew.runner.by_hand.pull_request import open_pull_request, pull_request_of  # noqa: PLC0415 - see above

    task = view.chosen_task
    wanted = await in_background(pull_request_of, Workplace(root=view.root), task)
    question = (
        f"Push {wanted.branch} to {wanted.remote} ({wanted.url}) and open a pull request against "
        f"{wanted.base}?\n{wanted.title}"
    )
    if await view.confirm(question):
        code = view.hand_over_terminal(open_pull_request, view.root, wanted)
        if code is not None:
            words = "the pull request is open" if code == 0 else f"it ended with exit code {code}"
            view.notify(words, severity="information" if code == 0 else "error")
