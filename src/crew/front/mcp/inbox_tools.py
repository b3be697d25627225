"""The MCP tools of a person's own assistant: read the open questions and answer them."""

import os

from crew.front.mcp.tool_list import Tool, ToolCall, ToolReply, said

INBOX_INSTRUCTIONS = (
    "You help a person who runs a crew of agents. list-questions lists the open questions; "
    "answer-question sends the person's decision, and the agent that asked continues with it."
)

INBOX_TOOLS = (
    Tool(
        name="list-questions",
        verb="inbox",
        description=(
            "List the questions that wait for a person, the oldest first: id, task, role, "
            "question, context, asked_at, kind."
        ),
        properties={},
    ),
    Tool(
        name="answer-question",
        verb="answer",
        description="Answer a question with the person's decision; the agent that asked continues.",
        properties={
            "question": {"type": "string", "description": "The id of the question, such as q1."},
            "text": {"type": "string", "description": "The answer."},
        },
        required=("question", "text"),
    ),
)


def is_in_linked_worktree() -> bool:
    """Whether this folder is a linked worktree, where agents work, not a main checkout."""
    try:
        return _is_linked(os.getcwd())  # noqa: PTH109 - pathlib is slow to load
    except OSError:  # a folder that was removed, or a `.git` file that cannot be read
        return False


def _is_linked(folder: str) -> bool:
    while not os.path.exists(pointer := os.path.join(folder, ".git")):  # noqa: PTH110, PTH118
        if (above := os.path.dirname(folder)) == folder:  # noqa: PTH120
            return False
        folder = above
    if os.path.isdir(pointer):  # noqa: PTH112
        return False
    with open(pointer, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        own = file.read().removeprefix("gitdir:").strip()
    return os.path.exists(os.path.join(folder, own, "commondir"))  # noqa: PTH110, PTH118


def done_for_a_person(asked: ToolCall) -> ToolReply:
    """Carry out a tool as `crew inbox` and `crew answer` do; no runner is needed."""
    from contextlib import closing  # noqa: PLC0415
    from pathlib import Path  # noqa: PLC0415

    from crew.domain.requests import Request  # noqa: PLC0415
    from crew.runner.requests.ask_crew import ask  # noqa: PLC0415
    from crew.runner.requests.person_only import refuse_agents  # noqa: PLC0415
    from crew.runner.views.row_views import open_question_views  # noqa: PLC0415
    from crew.store.fact_log import load_world  # noqa: PLC0415
    from crew.workplace import find_workplace  # noqa: PLC0415

    if asked.verb != "inbox":
        refuse_agents(Path.cwd(), "the tool answer-question")
    workplace = find_workplace(Path.cwd())
    with closing(workplace.db):
        if asked.verb == "inbox":
            return said({"reply": open_question_views(load_world(workplace.db))})
        reply = ask(workplace, Request(verb=asked.verb, args=asked.args))
        return said({"reply": f"question {reply} is answered"})
