"""The tools of a person's own assistant: what the crew asks that person, and how to answer."""

from crew.front.mcp.tools import Tool

INBOX_INSTRUCTIONS = (
    "You help a person who runs a crew of agents. list-questions tells what waits for that person; "
    "answer-question passes on what the person decided, and the agent that asked goes on with it."
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
        description="Answer a question with what the person decided; whoever asked goes on then.",
        properties={
            "question": {"type": "string", "description": "The id of the question, such as q1."},
            "text": {"type": "string", "description": "The answer."},
        },
        required=("question", "text"),
    ),
)
