"""`crew channel invite`: prints the address and token of a member that connects by itself."""

import json
import time
from typing import TYPE_CHECKING, Any

from crew.domain.channels.channel_requests import find_channel
from crew.domain.requests import Request
from crew.domain.rows.channel import member_id
from crew.front.cli.call import Call, pass_call
from crew.front.cli.command_shape import command
from crew.front.cli.output import narrate, print_json, say
from crew.front.cli.params import channel_argument, member_argument
from crew.runner.prompts.mcp_connection import address_file, is_server_installed
from crew.runner.requests.ask_crew import ask
from crew.runner.views.channel_views import load_channels
from crew.store.runner_lock import find_runner

if TYPE_CHECKING:
    from crew.workplace import Workplace

PATIENCE_S = 5.0
LOOK_EVERY_S = 0.1


@command("invite", example="crew channel invite reviews guest")
@channel_argument()
@member_argument("member")
@pass_call
def invite(call: Call, name: str, member: str) -> None:
    """Print the address and the token with which an agent connects to a channel over MCP.

    The token is for this member of this channel only; its holder speaks as the member.
    """
    from crew.runner.requests.tokens import Tokens  # noqa: PLC0415 - `channel list` does without hashes

    workplace = call.workplace()
    args = {"channel": name, "member": member}
    ask(workplace, Request(verb="channel_invite", args=args))
    found = find_channel(load_channels(workplace.db), name).id
    token = Tokens(workplace.folder).member_token(member_id(found, member))
    url = _address(workplace)
    servers = _servers(workplace, token, url)
    kept = str(address_file(workplace.folder)) if is_server_installed() else None
    if call.json:
        print_json(
            {**args, "url": url, "address_file": kept, "token": token, "mcpServers": servers}
        )
        return
    say(f"url:   {url or '(a running `crew run` has one; the stdio server below needs none)'}")
    if kept:
        say(f"file:  {kept} (holds the url; read it again if the url stops answering)")
    say(f"token: {token}")
    say(json.dumps({"mcpServers": servers}, indent=2))
    if find_runner(workplace.lock_file) is None:
        narrate(call, "no runner is up: start `crew run`, or `crew channel run`, for it to connect")


def _address(workplace: "Workplace") -> str | None:
    """The address of the runner's MCP server; it starts shortly after the first invitation."""
    give_up_at = time.monotonic() + PATIENCE_S
    while is_server_installed() and find_runner(workplace.lock_file) is not None:
        if url := ask(workplace, Request(verb="mcp_url", args={})):
            return str(url)
        if time.monotonic() > give_up_at:
            break
        time.sleep(LOOK_EVERY_S)
    return None


def _servers(workplace: "Workplace", token: str, url: str | None) -> dict[str, Any]:
    env = {"CREW_TOKEN": token, "CREW_REPO": str(workplace.root)}
    ways: dict[str, Any] = {}
    if url:
        headers = {"Authorization": f"Bearer {token}"}
        ways["crew"] = {"type": "http", "url": url, "headers": headers}
    ways["crew-by-stdio"] = {"command": "crew", "args": ["mcp"], "env": env}
    return ways
