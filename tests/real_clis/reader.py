"""A model that knows nothing but what it reads: it plays the roles of a quest from their prompts.

The request names the items. A person's answer names the seal that every file must end with; the
model that builds a file finds it in its own prompt or not at all. The last item lists the marks
that the others put into their summaries. What a prompt lacks is remembered in `missing`.
"""

import hashlib
import json
import re
from dataclasses import dataclass, field

from real_clis.conversation import Conversation, conversation
from real_clis.scripted_model import Asked, Say, Tool

QUESTION = "Which line must every file end with?"
PLANS, BUILDS, ASKS = {"pathseeker", "planner"}, {"codeweaver", "builder"}, {"chaoswhisperer"}
SEAL, ITEMS = re.compile(r"seal-[0-9a-f]{8}"), re.compile(r"[Ii]tems: ([a-z, ]+)")
MARK, MERGE = re.compile(r"mark-[0-9a-f]{8}"), re.compile(r"commit to merge: ([0-9a-f]{40})")
ROLE = r"(?:In this quest you are|You act as) (\w+)"
LAST = "list"


def mark(name: str) -> str:
    """What the summary of an item carries, and no other text."""
    return f"mark-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@dataclass
class Reader:
    """A scenario of the scripted model whose steps come from what it is asked."""

    asked: list[Asked] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    conflicts: int = 0
    sharing: int = 2  # how many items add a line to one file

    def next_step(self, body: dict) -> Say:
        here = conversation(body)
        if "your verdict alone" in here.prompt:
            return Say("It is in order.\nPASS")
        acts = self._acts(here)
        if here.calls >= len(acts):
            return Say("I have finished my part.")
        return Say(tools=(acts[here.calls],))

    @property
    def turns(self) -> list[Asked]:
        return [asked for asked in self.asked if asked.took_step]

    def _acts(self, here: Conversation) -> list[Tool]:
        role = self._found(ROLE, here.told, "its role")
        if commit := re.search(MERGE, here.prompt):
            return self._merge(here, commit[1])
        if role in ASKS and not SEAL.search(here.prompt):
            return [_signal(here, signal="needs-user-input", question=QUESTION)]
        if role == "worker":
            return self._build_all(here)
        if role in PLANS:
            return self._plan(here)
        if role in BUILDS:
            return self._build(here)
        return [_signal(here, signal="complete", summary="I looked at it, and it is in order.")]

    def _plan(self, here: Conversation) -> list[Tool]:
        names = self._items(here)
        items = [_item(name, shared=name in names[: self.sharing]) for name in names]
        last = {**_item(LAST, shared=False), "dependencies": names}
        plan = Tool(name=here.tool("plan-steps"), input={"steps": [*items, last]})
        return [plan, _signal(here, signal="complete", summary="The plan is handed in.")]

    def _build(self, here: Conversation) -> list[Tool]:
        name = self._found(r"Task \d+: Write ([a-z]+)\.txt", here.told, "the file to write")
        seal = self._found(f"({SEAL.pattern})", here.told, "the line that files end with")
        marks = sorted(set(MARK.findall(here.told))) if name == LAST else [name]
        lines = "\\n".join([*marks, seal])
        index = f"echo {name} >> index.txt; " if "index.txt" in here.prompt else ""
        work = f"printf '{lines}\\n' > {name}.txt; {index}git add -A; git commit -qm 'Add {name}'"
        summary = f"{name}.txt is there, {mark(name)}."
        return [_shell(here, work), _signal(here, signal="complete", summary=summary)]

    def _build_all(self, here: Conversation) -> list[Tool]:
        """The whole request in one session: no marks to be read, only the items."""
        names = self._items(here)
        seal = self._found(f"({SEAL.pattern})", here.told, "the line that files end with")
        work = f"for name in {' '.join([*names, LAST])}; do echo {seal} > $name.txt; done"
        commit = f"{work}; git add -A; git commit -qm 'Add all'"
        return [_shell(here, commit), _signal(here, signal="complete", summary="All are there.")]

    def _items(self, here: Conversation) -> list[str]:
        return self._found(ITEMS.pattern, here.prompt, "the items").replace(" ", "").split(",")

    def _merge(self, here: Conversation, commit: str) -> list[Tool]:
        """Take both sides of every conflict."""
        self.conflicts += 1
        both = "sed -i '/^<<<<<<< /d;/^|||||||/d;/^=======$/d;/^>>>>>>> /d' index.txt"
        work = f"git merge -q {commit} || {{ {both}; git add -A; git commit -qm 'Merge both'; }}"
        return [_shell(here, work), _signal(here, signal="complete", summary="Both are there.")]

    def _found(self, pattern: str, text: str, what: str) -> str:
        found = re.search(pattern, text)
        if found is None:
            self.missing.append(f"{what} is not in: {text}")
            return ""
        return found[1]


def _item(name: str, *, shared: bool) -> dict:
    adds = f" Add the line {name} to index.txt too." if shared else ""
    return {
        "id": name,
        "title": f"Write {name}.txt",
        "description": f"Write {name}.txt.{adds}",
        "acceptance": "It is there.",
    }


def _shell(here: Conversation, command: str) -> Tool:
    if "exec_command" in here.tools:
        return Tool(name="exec_command", input={"cmd": command})
    return Tool(name="Bash", input={"command": command, "description": "work"})


def _signal(here: Conversation, **said: str) -> Tool:
    return Tool(name=here.tool("signal-back"), input=said)


def is_first(asked: Asked) -> bool:
    """Whether a session of Claude Code begins with this request."""
    return all(message["role"] != "assistant" for message in asked.body["messages"])


def tokens(asked: Asked) -> int:
    """About what a request costs to read: four characters a token."""
    return len(json.dumps(asked.body, ensure_ascii=False)) // 4
