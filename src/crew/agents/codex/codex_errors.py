"""Classifies failures of Codex by its typed errors, or else by its fixed sentences."""

from crew.agents.adapter import AgentSpec
from crew.agents.errors.http_status import kind_of_status
from crew.agents.step_process import process_error
from crew.domain.kernel.text import one_line, plain
from crew.domain.rows.step import ErrorKind, StepError
from crew.system.processes.process import ProcessEnd

_BY_NAME = {
    "contextWindowExceeded": ErrorKind.CONTEXT_FULL,
    "sessionBudgetExceeded": ErrorKind.BILLING,
    "usageLimitExceeded": ErrorKind.RATE_LIMIT,
    "rateLimitExceeded": ErrorKind.RATE_LIMIT,
    "flexUnavailable": ErrorKind.OVERLOADED,
    "serverOverloaded": ErrorKind.OVERLOADED,
    "policyCapacityUnavailable": ErrorKind.OVERLOADED,
    "internalServerError": ErrorKind.OVERLOADED,
    "unauthorized": ErrorKind.AUTH,
    "tooManyDenials": ErrorKind.PERMISSION_DENIED,
    "httpConnectionFailed": ErrorKind.OVERLOADED,
    "responseStreamConnectionFailed": ErrorKind.OVERLOADED,
    "responseStreamDisconnected": ErrorKind.OVERLOADED,
    "responseTooManyFailedAttempts": ErrorKind.OVERLOADED,
}
_BY_TEXT = (
    ("no rollout found", ErrorKind.SESSION_UNKNOWN),
    ("invalid session id", ErrorKind.SESSION_UNKNOWN),
    ("already has an active writer", ErrorKind.SESSION_IN_USE),
    ("Not inside a trusted directory", ErrorKind.PERMISSION_DENIED),
    ("Quota exceeded", ErrorKind.BILLING),
    ("usage limit", ErrorKind.RATE_LIMIT),
    ("ran out of room", ErrorKind.CONTEXT_FULL),
    ("context_length_exceeded", ErrorKind.CONTEXT_FULL),
    ("exceeds the context window", ErrorKind.CONTEXT_FULL),
    ("401 Unauthorized", ErrorKind.AUTH),
    ("404 Not Found", ErrorKind.UNKNOWN_MODEL),
    ("model_not_found", ErrorKind.UNKNOWN_MODEL),
    ("model is not supported", ErrorKind.UNKNOWN_MODEL),
    ("403 Forbidden", ErrorKind.AUTH),
    ("Missing environment variable", ErrorKind.AUTH),
    ("Missing optional dependency", ErrorKind.NOT_INSTALLED),
    ("429 Too Many Requests", ErrorKind.RATE_LIMIT),
    ("rate limit exceeded", ErrorKind.RATE_LIMIT),
    ("at capacity", ErrorKind.OVERLOADED),
    ("high demand", ErrorKind.OVERLOADED),
    ("stream disconnected", ErrorKind.OVERLOADED),
    ("error sending request", ErrorKind.OVERLOADED),
)


def turn_error(
    message: str, *, info: object = None, reset_at: float | None = None, details: str = ""
) -> StepError:
    """The error of a turn that Codex reports as failed."""
    kind = _by_text(message) or _by_info(info) or _by_text(details) or ErrorKind.CRASHED
    return StepError(
        kind=kind,
        message=one_line(message, limit=300) or "the turn failed without a message",
        reset_at=reset_at if kind is ErrorKind.RATE_LIMIT else None,
    )


def exit_error(end: ProcessEnd, spec: AgentSpec, earlier: str = "") -> StepError:
    """The error of a process that failed. `earlier` is the message in its earlier events."""
    error = process_error(end, spec)
    lines = [earlier, *plain(end.stderr_tail).splitlines()]
    for line in lines:
        if (kind := _by_text(line)) is not None:
            return StepError(kind=kind, message=one_line(line, limit=300))
    lines_left = [line for line in lines if line.strip() and not _is_backtrace(line)]
    if end.reason == "exited" and lines_left:
        what = f"exited with code {end.code}: {one_line(lines_left[-1], limit=300)}"
        return StepError(kind=error.kind, message=f"{spec.name}: {what}")
    return error


def _is_backtrace(line: str) -> bool:
    return line.startswith("Stack backtrace") or line.strip().endswith("<unknown>")


def _by_text(text: str) -> ErrorKind | None:
    return next((kind for part, kind in _BY_TEXT if part in text), None)


def _by_info(info: object) -> ErrorKind | None:
    """`codexErrorInfo` is a name, or one name with details such as an HTTP status."""
    if isinstance(info, str):
        return _BY_NAME.get(info)
    if isinstance(info, dict) and info:
        name, details = next(iter(info.items()))
        status = details.get("httpStatusCode") if isinstance(details, dict) else None
        return kind_of_status(status) or _BY_NAME.get(name)
    return None
