"""The MCP tools of a channel's member, whose token gives access to these only."""

from crew.front.mcp.tool_list import Tool

MEMBER = "channel:"
"""The prefix of a member's token."""

CHANNEL_INSTRUCTIONS = (
    "You are a member of a channel of crew, in which one speaks at a time. Call join-channel, "
    "then read-messages with waitSeconds until state is active: then it is your turn. Send your "
    "messages with post-message, end your turn with turn-complete, and read again."
)

CHANNEL_TOOLS = (
    Tool(
        name="join-channel",
        verb="channel_join",
        description="Join your channel; you are queued if a person assigned you.",
        properties={},
    ),
    Tool(
        name="read-messages",
        verb="channel_read",
        description=(
            "Read the messages since your last read, and whose turn it is. With waitSeconds the "
            "answer comes as soon as there is a message or it is your turn. The field more is the "
            "number of messages that are left: read again."
        ),
        properties={
            "waitSeconds": {
                "type": "number",
                "description": "How long to wait for a message, at most 50. Default: 0.",
            },
            "since": {
                "type": "integer",
                "description": "Read again the messages after this sequence number.",
            },
        },
    ),
    Tool(
        name="post-message",
        verb="channel_post",
        description=(
            "Post a message in the channel; only in your turn. A text that ends with TURN_COMPLETE "
            "ends your turn too."
        ),
        properties={"text": {"type": "string", "description": "The message."}},
        required=("text",),
    ),
    Tool(
        name="turn-complete",
        verb="channel_turn_complete",
        description="End your turn; the next member gets it.",
        properties={},
    ),
    Tool(
        name="wait",
        verb="channel_wait",
        description=(
            "Pause your turn while you wait for something outside the channel; over=true ends the "
            "wait and resumes your turn. After the limit your turn is forfeited."
        ),
        properties={
            "for": {"type": "string", "description": "What you wait for."},
            "seconds": {"type": "number", "description": "How long at most."},
            "over": {"type": "boolean", "description": "True when the wait has ended."},
        },
    ),
    Tool(
        name="heartbeat",
        verb="channel_heartbeat",
        description="Report that you are still connected, during long work.",
        properties={},
    ),
)
