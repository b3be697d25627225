"""The log of each real CLI reads as what the agent said and did."""

from dataclasses import replace

import pytest

from agents.contract import run_step
from crew.runner.views.read_log import entries_of_lines
from real_clis.scripted_model import Say

pytestmark = pytest.mark.timeout(240)


@pytest.mark.ability("`crew logs` shows words, tools, results and costs")
def test_the_log_of_a_step_holds_words_tools_results_and_costs_and_no_unknown_line(
    cli, agent_of, script, order
):
    script(cli.run("echo a-result; exit 3"), Say("I am through.\nDONE"))
    assert run_step(agent_of(cli), replace(order, prompt="write new.txt")).error is None
    entries = list(entries_of_lines(order.log.read_text().splitlines()))
    (tool,) = [entry for entry in entries if entry.kind == "tool"]
    assert (tool.tool in {cli.shell, "shell"}, tool.text) == (True, "echo a-result; exit 3")
    (result,) = [entry for entry in entries if entry.kind == "result"]
    assert "a-result" in result.text
    assert [entry.text for entry in entries if entry.kind == "said"][-1] == "I am through.\nDONE"
    assert [entry.kind for entry in entries][-2:] == ["cost", "ended"]
    assert entries[-2].input_tokens > 0
    assert [entry.text for entry in entries if entry.text.startswith("{")] == []
