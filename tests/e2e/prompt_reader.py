"""An agent that knows nothing of crew: it reads its prompt and does what that says, word for word.

It is started with the prompt on stdin and uses no variable, file or argument of crew. What it is
to do, with which commands, and how it ends its turn are all taken from the text. It pays as much
attention as a model in a hurry: of a task it reads three sentences.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

APPEND = re.compile(r"Append the line `([^`]+)` to (\S+)\.")
HAS = re.compile(r"(\S+) has the line `([^`]+)`")
LACKS = re.compile(r"^> (\S+) lacks the line `([^`]+)`", re.MULTILINE)
ITEM = re.compile(r"^Item (\w+)(?: after ([\w, ]+))?: (.*)$", re.MULTILINE)
BLANK = re.compile(r"^> (\S+):(\d+): a blank at the end", re.MULTILINE)
BOTH = re.compile(r"(?ms)^<{7} .*?\n(.*?)(?:^\|{7} .*?)?^={7}\n(.*?)^>{7} .*?(?:\n|\Z)")
ATTENTION = 3


def main(prompt: str) -> None:
    time.sleep(0.2)  # as long as somebody who thinks, so that items overlap
    if "The commit to merge: " in prompt:
        resolve(prompt)
        return signal(prompt, "complete", "both sides are there")
    for words, part in PARTS.items():
        if words in prompt:
            return part(prompt)
    raise SystemExit("the prompt does not say what to do")


# The parts that the prompt gives it


def settle(prompt: str) -> None:
    """`Write down, in a file of the repository ... (or FILE)`."""
    file = Path(re.search(r"\(or (\S+)\)", prompt)[1])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(task_of(prompt) + "\n")
    commit("Settle the requirements")
    signal(prompt, "complete", "the requirements are written down")


def plan(prompt: str) -> None:
    """`write them to a JSON file and run` the command that follows."""
    steps = []
    for name, after, text in ITEM.findall(task_of(prompt)):
        wanted = [f"{file} has the line `{words}`" for words, file in APPEND.findall(text)]
        step = {"id": name, "title": f"Add {name}", "description": text}
        deps = [one.strip() for one in after.split(",") if one.strip()]
        steps.append({**step, "dependencies": deps, "acceptance": "\n".join(wanted)})
    command = re.search(r"write them to a JSON file and run `(.+?) FILE`", prompt)[1]
    file = Path(subprocess.check_output(["mktemp"], text=True).strip())
    file.write_text(json.dumps(steps))
    run(f"{command} {file}")
    signal(prompt, "complete", f"{len(steps)} items")


def build(prompt: str) -> None:
    told = LACKS.findall(prompt)
    wanted = told or [(file, words) for words, file in APPEND.findall(task_of(prompt))][:ATTENTION]
    for file, words in wanted:
        add(file, words)
    commit("Build the item")
    signal(prompt, "complete", "built")


def attack(prompt: str) -> None:
    """`ask ROLE to follow up and say how to see it` where the item does not keep its promise."""
    missing = missing_in(task_of(prompt))
    if missing:
        who = re.search(r"missing, ask (\w+) to follow up", prompt)[1]
        return signal(prompt, "needs-role-followup", missing[0], role=who)
    words = re.search(r"^Task \S+: (.*)$", prompt, re.MULTILINE)[1]
    case = Path("cases") / f"{words.replace(' ', '-')}.txt"
    case.parent.mkdir(exist_ok=True)
    case.write_text(f"{words}: twice, at once, with nothing\n")
    commit("Write down the cases")
    return signal(prompt, "complete", "it holds")


def mend(prompt: str) -> None:
    for file, number in BLANK.findall(prompt):
        lines = Path(file).read_text().split("\n")
        lines[int(number) - 1] = lines[int(number) - 1].rstrip()
        Path(file).write_text("\n".join(lines))
    commit("Take the blanks off")
    signal(prompt, "complete", "mended")


def judge(prompt: str) -> None:
    missing = missing_in(task_of(prompt))
    if missing:
        who = re.search(r"ask (\w+) to follow up with a list", prompt)[1]
        return signal(prompt, "needs-role-followup", missing[0], role=who)
    return signal(prompt, "complete", "it is what was asked for")


PARTS = {
    "You settle the requirements": settle,
    "You turn requirements into items": plan,
    "You build one item": build,
    "You try to break an item": attack,
    "You fix what a gate": mend,
    "You judge the whole quest": judge,
}


def resolve(prompt: str) -> None:
    """`Merge the commit to merge into your branch` with the command that the prompt names."""
    commit_id = re.search(r"^The commit to merge: (\w+)$", prompt, re.MULTILINE)[1]
    command = re.search(r"`(git merge COMMIT)`", prompt)[1]
    run(command.replace("COMMIT", commit_id), may_fail=True)
    for name in output("git diff --name-only --diff-filter=U").splitlines():
        text = Path(name).read_text()
        Path(name).write_text(BOTH.sub(r"\1\2", text))
    run("git add --all && git commit --quiet --no-edit")


# How it reads and acts


def task_of(prompt: str) -> str:
    """The quoted text of the task that the prompt is about."""
    begun = prompt[re.search(r"^Task \S+: .*\n\n(?=> )", prompt, re.MULTILINE).end() :]
    lines = []
    for line in begun.splitlines():
        if not line.startswith(">"):
            break
        lines.append(line[2:])
    return "\n".join(lines)


def missing_in(text: str) -> list[str]:
    wanted = HAS.findall(text) or [(file, words) for words, file in APPEND.findall(text)]
    found = {file: Path(file).read_text().splitlines() for file, _ in wanted if Path(file).exists()}
    stripped = [(file, words.rstrip()) for file, words in wanted]
    return [
        f"{f} lacks the line `{words}`" for f, words in stripped if words not in found.get(f, ())
    ]


def add(file: str, words: str) -> None:
    """At the end, as everybody does."""
    before = Path(file).read_text() if Path(file).exists() else ""
    if words not in before.splitlines():
        Path(file).write_text(f"{before}{words}\n")


def commit(message: str) -> None:
    run("git add --all")
    run(f"git diff --cached --quiet || git commit --quiet -m '{message}'")


def signal(prompt: str, kind: str, words: str, *, role: str = "") -> None:
    """The command for this signal, as the prompt spells it, with its gaps filled in."""
    command = re.search(rf"`(crew signal {kind} [^`]*)`", prompt)[1]
    quoted = "'" + words.replace("'", "") + "'"
    run(command.replace("ROLE", role).replace('"…"', quoted))


def run(command: str, *, may_fail: bool = False) -> None:
    print(f"$ {command}", flush=True)
    code = subprocess.run(["sh", "-c", command], check=False).returncode
    if code and not may_fail:
        raise SystemExit(f"{command}: exit code {code}")


def output(command: str) -> str:
    return subprocess.check_output(["sh", "-c", command], text=True)


if __name__ == "__main__":
    main(sys.stdin.read())
