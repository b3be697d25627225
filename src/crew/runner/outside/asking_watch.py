"""Translates what an agent's CLI asks during a step to questions for a person, and back."""

from dataclasses import replace
from pathlib import Path

from crew.agents.adapter import YES, Inquiry, Permission, Watch
from crew.domain.runs.questions import LiveQuestion, permission_to
from crew.runner.outside.outside import StepCall
from crew.runner.views.step_log import note_messages


def asking_watch(call: StepCall, *, log: Path, asks_permission: bool) -> Watch:
    """The callbacks of a step. Questions always reach a person, permissions only if configured."""

    def heard(message: str) -> None:
        note_messages(log, (message,))
        call.heard(message)

    watch = Watch(started=call.started, doing=call.doing, heard=heard)
    ask = call.asked
    if ask is None:
        return watch

    async def asked(permission: Permission) -> bool:
        answer = await ask(permission_to(permission.tool, permission.detail))
        return answer.strip().lower() in YES

    async def inquired(inquiry: Inquiry) -> str:
        return await ask(
            LiveQuestion(
                question=inquiry.question, context=inquiry.context, choices=inquiry.choices
            )
        )

    watch = replace(watch, inquired=inquired)
    return replace(watch, asked=asked) if asks_permission else watch
