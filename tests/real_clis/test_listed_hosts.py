"""Each of the four CLIs in a sandbox without network: it reaches its model as a listed host."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from agents.conftest import need
from agents.contract import run_step
from boundary.proxy_scene import served
from crew.runner.sandbox.listed_hosts import by_proxy
from crew.system.processes.process import working_bwrap
from crew.system.sandbox.allowed import Allowed
from real_clis.scripted_model import Say

pytestmark = [pytest.mark.timeout(240), pytest.mark.clis]


@pytest.fixture
def crew(model, tmp_path):
    """A crew that lists the model by its name."""
    need(working_bwrap(), "bwrap")
    port = model.address.rpartition(":")[2]
    network = (f"model.test:{port}", f"127.0.0.1:{port}")
    folder = tmp_path / ".crew"
    folder.mkdir()
    sandbox = SimpleNamespace(network=network)
    return SimpleNamespace(folder=folder, settings=SimpleNamespace(sandbox=sandbox))


@pytest.mark.ability("works with a list of hosts (`[sandbox] network`)")
def test_its_model_and_its_commands_use_the_list(cli, agent_of, crew, script, order):
    play = script(cli.run("curl -sS http://strange.test/ > said.txt; true"), Say("ok\nDONE"))
    allowed = Allowed(has_network=False, by_proxy=by_proxy(crew))
    with served(crew) as refused:
        agent = agent_of(cli, at=f"http://{crew.settings.sandbox.network[0]}")
        outcome = run_step(agent, replace(order, allowed=allowed))
    assert (outcome.error, outcome.done) == (None, True), refused
    assert len(play.turns) == 2
    said = (order.worktree / "said.txt").read_text()
    assert said == "crew refused strange.test:80: it is not in [sandbox] network\n"
