"""`crew mcp`: serves crew's tools to an agent whose CLI starts its MCP servers itself."""

import os

from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.mcp.stdio_shim import serve

EXAMPLE = """crew mcp
claude --mcp-config '{"mcpServers": {"crew": {"command": "crew", "args": ["mcp"]}}}'"""


@command("mcp", example=EXAMPLE)
@pass_call
def mcp(call: Call) -> int:
    """Serve crew's tools to an agent over MCP on stdio.

    For an agent's own step, which has CREW_TOKEN and CREW_DOOR in its environment; both must
    reach this command. A CLI that can use HTTP needs no command: CREW_MCP_URL has the same tools.
    Without CREW_TOKEN it is for a person's own assistant, which gets the commands of a person as
    tools: tasks, quests, the inbox. `crew plugin install` connects it.
    """
    os.chdir(call.directory)
    return serve()
