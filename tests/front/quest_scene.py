"""A crew whose agents follow a script through the roles of a small workflow."""

import json

from front.conftest import CliScene, Said

SMALL = """\
description = "planned by one, written by another"

[roles.planner]
owns = "the plan"

[roles.writer]
title = "writes the text"
owns = "the text"
signals = ["complete", "needs-user-input", "needs-role-followup"]

[roles.helper]
owns = "what the writer cannot do"

[[stages]]
name = "plan"
role = "planner"
plans = true
complete = "walk"

[[stages]]
name = "walk"
steps = true
complete = "last"

[[stages]]
name = "last"
role = "planner"
complete = "done"

[[step_stages]]
name = "write"
role = "writer"
complete = "check"

[[step_stages]]
name = "check"
gate = true
green = "done"
red = "write"
limit = 3
"""

Turn = list[dict]


def signal(words: str) -> dict:
    return {"run": f"crew signal {words}"}


def complete(*work: dict) -> Turn:
    return [*work, signal("complete --summary fine")]


def written(path: str, text: str = "x\n") -> Turn:
    return complete({"write": {"path": path, "text": text}}, {"commit": path})


def asked(question: str) -> Turn:
    return [signal(f"needs-user-input --question '{question}'")]


def step(name: str, *deps: str) -> dict:
    return {
        "id": name,
        "title": f"Step {name}",
        "description": f"Write {name}.",
        "dependencies": list(deps),
        "files": [f"{name}.txt"],
        "acceptance": "it is there",
    }


def questing(scene: CliScene, roles: dict[str, dict[str, list[Turn]]], *steps: dict) -> None:
    """`roles` are the turns by title of the task and name of the role; the plan is handed in."""
    folder = scene.root / ".crew" / "workflows"
    folder.mkdir(exist_ok=True)
    (folder / "small.toml").write_text(SMALL)
    plan = scene.folder / "plan.json"
    plan.write_text(json.dumps(steps))
    planned = complete({"run": f"crew quest plan '{plan}'"})
    request = {"as_planner": [planned, complete()], **_named(roles.get("Request", {}))}
    others = {f"Step {one['id']}": _named(roles.get(one["id"], {})) for one in steps}
    script = scene.folder / "script.json"
    script.write_text(json.dumps({"tasks": {"Request": request, **others}}))
    config = scene.root / ".crew" / "config.toml"
    config.write_text(
        "[run]\nagents = 2\nbackoff_s = 0.05\n[agents]\nworker_default = 'scripted'\n"
        f"[agents.scripted]\nscript = {json.dumps(str(script))}\n[complete]\n"
        "command = '! grep -qs BROKEN *.txt'\n"
    )


def _named(roles: dict[str, list[Turn]]) -> dict[str, list[Turn]]:
    return {f"as_{role}": turns for role, turns in roles.items()}


def drained(scene: CliScene, *args: str) -> Said:
    """`crew run --drain` to its end, which may take longer than other commands."""
    running = scene.start("run", "--drain", *args)
    out, err = running.communicate(timeout=100)
    assert "Traceback" not in err, err
    return Said(running.returncode, out, err)
