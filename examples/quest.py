"""A quest from Python, to its end: planned, asked about, answered, built in parallel and merged.

`python examples/quest.py` makes a small repository in a temporary folder. Its agents follow the
script below in place of a model: no key, no network, nothing spent. With real agents the only
difference is the configuration.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from crew import Crew, Running

REQUEST = "Greet in two languages\n\nA file for each language, with one greeting in it."

PLAN = [
    {"id": "names", "title": "Choose the names", "acceptance": "names.txt is there"},
    {"id": "english", "title": "Greet in English", "dependencies": ["names"]},
    {"id": "german", "title": "Greet in German", "dependencies": ["names"]},
]

Actions = list[dict[str, Any]]


def complete(*work: dict[str, Any]) -> list[Actions]:
    """One turn of a role: the work, then its signal."""
    return [[*work, {"run": "crew signal complete --summary 'it is there'"}]]


def writes(path: str, text: str) -> Actions:
    return [{"write": {"path": path, "text": text}}, {"commit": path}]


def built(path: str, text: str) -> dict[str, Any]:
    """What the two roles do that every step meets."""
    return {"as_codeweaver": complete(*writes(path, text)), "as_siegemaster": complete()}


def script() -> dict[str, Any]:
    """By title of the task and role; the request has three roles of its own."""
    asks = "crew signal needs-user-input --question 'Formal or informal?'"
    request = {
        "as_chaoswhisperer": [[{"run": asks}], *complete(*writes("wanted.md", "Two files.\n"))],
        "as_pathseeker": complete({"run": f"echo '{json.dumps(PLAN)}' | crew quest plan -"}),
        "as_lawbringer": complete(),
    }
    steps = {
        "Choose the names": built("names.txt", "Ann\n"),
        "Greet in English": built("english.txt", "Hello, Ann\n"),
        "Greet in German": built("german.txt", "Hallo, Ann\n"),
    }
    return {"tasks": {REQUEST.splitlines()[0]: request, **steps}}


def make_repository(place: Path) -> Path:
    repo = place / "greetings"
    repo.mkdir()
    subprocess.run(("git", "init", "-q", "-b", "main"), cwd=repo, check=True)
    for name, value in (("user.name", "Ann"), ("user.email", "ann@example.org")):
        subprocess.run(("git", "config", name, value), cwd=repo, check=True)
    subprocess.run(("git", "commit", "-q", "--allow-empty", "-m", "first"), cwd=repo, check=True)
    told = place / "script.json"
    told.write_text(json.dumps(script()))
    (repo / ".crew.toml").write_text(
        '[agents]\nworker_default = "scripted"\n'
        f"[agents.scripted]\nscript = {json.dumps(str(told))}\n"
        '[complete]\ncommand = "true"\n'
    )
    return repo


def watch(crew: Crew, running: Running, *, after: int) -> int:
    """Show what happens and answer what is asked, until the runner ends; the last number."""
    for event in crew.events(follow=True, after=after, until=lambda: running.is_over):
        after = event.number
        if event.is_question:
            print(f"{event.changes['role']} asks: {event.changes['question']}")
            crew.answer(event.subject, "Informal.")
        elif event.kind in {"quest", "walk"} and event.target:
            print(f"{event.kind} {event.subject}: {event.target}")
    return after


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as place,
        Crew(make_repository(Path(place)), init=True) as crew,
    ):
        quest = crew.quest(REQUEST, slots=2)
        seen = 0
        while quest.state == "open":
            running = crew.run(agents=2)
            seen = watch(crew, running, after=seen)
            print(f"the runner ended with {running.wait()}")
        story = quest.show()
        print(f"{story['steps_done']} of {story['steps_all']} steps, quest {quest.state}")
        print("on main:", ", ".join(sorted(file.name for file in crew.root.glob("*.txt"))))


if __name__ == "__main__":
    main()
