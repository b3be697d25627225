"""Somebody who watches a step of a real CLI, speaks to it and answers what it asks."""

import asyncio
from dataclasses import replace

from agents.contract import SILENT
from crew.agents.adapter import Controls, Say


class Company:
    """With answers, it can be asked for leave, and gives them one by one."""

    def __init__(self, *answers):
        self.controls = Controls()
        self.heard = []
        self.asked = []
        self.answers = list(answers)
        self.inquired = []

    @property
    def watch(self):
        if not self.answers:
            return replace(SILENT, heard=self.heard.append)
        return replace(SILENT, heard=self.heard.append, asked=self._answer)

    def watch_with(self, *answers):
        """Its questions are answered one by one; leave is asked of nobody."""
        left = list(answers)

        async def inquired(inquiry):
            self.inquired.append(inquiry)
            return left.pop(0)

        return replace(SILENT, inquired=inquired)

    async def _answer(self, permission):
        self.asked.append(permission)
        return self.answers.pop(0)

    def say(self, message, text):
        self.controls.send(Say(message=message, text=text))

    def run(self, adapter, order, play=None, watch=None):
        """Run a step; `play` is a function that runs on a thread of its own beside it."""

        async def both():
            watching = watch or self.watch
            step = asyncio.ensure_future(adapter.run_step(order, watching, self.controls))
            if play is not None:
                loop = asyncio.get_running_loop()
                await asyncio.to_thread(play, loop.call_soon_threadsafe)
            return await step

        return asyncio.run(both())
