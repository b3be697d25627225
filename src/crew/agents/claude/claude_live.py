"""Carries out the dialogue with a running Claude Code: sends lines, asks for permission."""

import json
from collections.abc import Iterable

from crew.agents.adapter import Controls, Watch
from crew.agents.asked_questions import answers_of
from crew.agents.background import Background
from crew.agents.claude.claude_dialogue import (
    Act,
    ClaudeQuestion,
    Dialogue,
    Woken,
    answer,
    answer_inquiries,
    user_message,
)
from crew.agents.claude.claude_events import Conversation
from crew.agents.dialogue_acts import DialogueEnded, MessageRead, QuestionWithdrawn, SendMessage
from crew.agents.event_fields import Event
from crew.system.processes.pipes import Talk

ENDS_WITHIN_S = 10.0  # after its input is closed


class Live:
    """One run of the program. Open questions end with it."""

    def __init__(self, conversation: Conversation, watch: Watch, background: Background) -> None:
        self.talk = Talk()
        self._conversation = conversation
        self._watch = watch
        self._background = background
        self._dialogue = Dialogue()

    @property
    def was_interrupted(self) -> bool:
        return self._dialogue.is_interrupted

    def begin(self, prompt: str, controls: Controls | None) -> None:
        if controls is not None:
            self._background.start("controls", self._pass_on(controls))
        self._act([SendMessage(user_message(prompt))])

    def take(self, chunk: bytes) -> None:
        before = self._conversation.doing
        for event in self._conversation.take(chunk):
            self._act(self._dialogue.read(event, is_done=self._conversation.has_signal))
        if self._conversation.doing != before:
            self._watch.doing(self._conversation.doing)
        if self._conversation.refusal:
            self.talk.close(linger_s=0.0)

    async def _pass_on(self, controls: Controls) -> None:
        while not self.talk.is_closed:
            self._act(self._dialogue.send(await controls.next()))
            await self.talk.taken()

    def _act(self, acts: Iterable[Act]) -> None:
        for act in acts:
            match act:
                case SendMessage(message=line):
                    self.talk.send(_line(line))
                case MessageRead(message=message):
                    self._watch.heard(message)
                case ClaudeQuestion():
                    self._background.start(act.request, self._ask(act))
                case QuestionWithdrawn(request=request):
                    self._background.cancel(request)
                case DialogueEnded():
                    self.talk.close(linger_s=ENDS_WITHIN_S)
                case Woken():
                    self.talk.close()

    async def _ask(self, question: ClaudeQuestion) -> None:
        """Ask a person. The program always gets an answer, or it would wait forever."""
        reply = answer(question, allowed=False)
        try:
            with self.talk.waiting():
                reply = await self._reply(question)
        finally:
            self.talk.send(_line(reply))

    async def _reply(self, question: ClaudeQuestion) -> Event:
        if not question.inquiries:
            return answer(question, allowed=await self._watch.asked(question.permission))
        answers = await answers_of(self._watch, question.inquiries)
        if answers is None:
            return answer(question, allowed=False)
        return answer_inquiries(question, answers)


def _line(event: Event) -> bytes:
    return json.dumps(event).encode() + b"\n"
