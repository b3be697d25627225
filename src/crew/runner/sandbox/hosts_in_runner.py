"""The listed hosts in a runner: a host that was refused becomes an entry of the inbox."""

import logging
import time
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from crew.domain.kernel.errors import CrewError
from crew.domain.kernel.host_list import WEB_PORTS
from crew.domain.runs.suspicions import CONNECT, unlisted_host
from crew.runner.requests.refused_acts import proven_act
from crew.runner.sandbox.listed_hosts import hosts_served

if TYPE_CHECKING:
    from crew.runner.runner import Runner
    from crew.system.host_proxy.proxy_server import Refused

log = logging.getLogger(__name__)


def hosts_of(runner: "Runner") -> AbstractAsyncContextManager[None]:
    """Serve the listed hosts while the runner runs."""
    return hosts_served(runner.workplace, lambda refused: _report(runner, refused))


def _report(runner: "Runner", refused: "Refused") -> None:
    context = how_to_allow(refused)
    tried = proven_act(runner, refused.token, act_of(refused), context=context)
    if tried is None:
        return
    try:
        runner.engine.record(unlisted_host(runner.engine.world, tried, at=time.time()))
    except (CrewError, OSError) as error:
        log.warning("a refused host is not recorded: %s", error)


def act_of(refused: "Refused") -> str:
    return f"{CONNECT}{refused.host}:{refused.port}"


def how_to_allow(refused: "Refused") -> str:
    host = f"[{refused.host}]" if ":" in refused.host else refused.host
    entry = host if refused.port in WEB_PORTS else f"{host}:{refused.port}"
    return (
        f'crew refused it: {refused.why}. To allow it, add "{entry}" to that list, '
        "and start the runner again."
    )
