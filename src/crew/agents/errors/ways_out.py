"""The next step for a person after an error that waiting does not fix, for each agent CLI."""

from collections.abc import Mapping
from dataclasses import replace

from crew.agents.adapter import AgentSpec
from crew.domain.rows.step import LASTING, ErrorKind, StepOutcome

_LOGIN: Mapping[str, str] = {
    "claude": "run `claude auth login`, or set a valid ANTHROPIC_API_KEY",
    "codex": "run `codex login`",
    "codex-exec": "run `codex login`, or set a valid CODEX_API_KEY",
    "opencode": "run `opencode auth login`",
    "gemini": "run `gemini` and log in, or set a valid GEMINI_API_KEY",
}


def with_remedy(spec: AgentSpec, outcome: StepOutcome) -> StepOutcome:
    """The outcome; an error that lasts names what a person has to do."""
    error = outcome.error
    if error is None or error.kind not in LASTING or error.remedy:
        return outcome
    return replace(outcome, error=replace(error, remedy=remedy(spec, error.kind)))


def remedy(spec: AgentSpec, kind: ErrorKind) -> str:
    again = f"then `crew retry {spec.name}`"
    match kind:
        case ErrorKind.AUTH:
            key = "after a change of the key in the environment, restart the runner"
            return f"{login(spec)}, {again}; {key}"
        case ErrorKind.BILLING:
            return f"add credit to the account that {spec.name} uses, {again}"
        case ErrorKind.UNKNOWN_MODEL:
            key = f"agents.{spec.name}.default_model"
            return f"choose a model that its account has: `crew config set {key} NAME`, {again}"
        case _:
            program = spec.command or f"the program of {spec.name}"
            return f"install {program}, or choose another agent (`crew agents`), {again}"


def login(spec: AgentSpec) -> str:
    return _LOGIN.get(spec.adapter, f"log in with the program of {spec.name}")
