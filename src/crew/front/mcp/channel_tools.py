"""The MCP tools of a channel's member, whose token gives access to these only."""

from crew.front.mcp.tool_list import Tool

MEMBER = "channel:"
"""The prefix of a member's token."""

CHANNEL_INSTRUCTIONS = (
    "You are a member of a channel of crew, in which one speaks at a time. Call join-channel, "
    "then read-messages with waitSeconds until state is active: then it is your turn. Say what you "
    "have to say with post-message, end your turn with turn-complete, and read again."
)

CHANNEL_TOOLS = (
    Tool(
        name="join-channel",
        verb="channel_join",
        description="Take part in your channel; you are queued if somebody assigned you.",
        properties={},
    ),
    Tool(
        name="read-messages",
        verb="channel_read",
        description=(
            "Read what was said since you read last, and whose turn it is. With waitSeconds the "
            "answer comes as soon as there is a message or it is your turn. If there is "
            "more, so many messages are left: read again."
        ),
        properties={
            "waitSeconds": {
                "type": "number",
                "description": "How long to wait for something, at most 50; 0 if not given.",
            },
            "since": {
                "type": "integer",
                "description": "Read again what came after this sequence number.",
            },
        },
    ),
    Tool(
        name="post-message",
        verb="channel_post",
        description=(
            "Say something in the channel; only in your turn. A text that ends with TURN_COMPLETE "
            "ends your turn too."
        ),
        properties={"text": {"type": "string", "description": "What to say."}},
        required=("text",),
    ),
    Tool(
        name="turn-complete",
        verb="channel_turn_complete",
        description="End your turn; the next member has it then.",
        properties={},
    ),
    Tool(
        name="wait",
        verb="channel_wait",
        description=(
            "Pause your turn while you wait for something outside; over=true says that it has come "
            "and you go on. After the limit your turn is forfeited."
        ),
        properties={
            "for": {"type": "string", "description": "What you wait for."},
            "seconds": {"type": "number", "description": "How long at most."},
            "over": {"type": "boolean", "description": "The wait is over."},
        },
    ),
    Tool(
        name="heartbeat",
        verb="channel_heartbeat",
        description="Say that you are there, while you work on something long.",
        properties={},
    ),
)
