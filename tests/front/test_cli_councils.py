"""A quest whose plan is discussed in a channel before anybody works at it."""

import json

from front.quest_scene import SMALL, complete, drained, questing, step, written

TALK = SMALL.replace(
    'complete = "walk"',
    """complete = "talk"

[[stages]]
name = "talk"
council = ["writer", "helper"]
rounds = 1
limit = 3
agreed = "walk"
objected = "plan"
""",
    1,
)


def test_a_plan_is_discussed_objected_to_made_again_and_then_carried_out(scene):
    again = complete({"run": f"crew quest plan '{scene.folder / 'plan.json'}'"})
    planner = {"Request": {"planner": [again, again, complete()]}}
    questing(scene, {**planner, "a": {"writer": [written("a.txt")]}}, step("a"))
    (scene.root / ".crew" / "workflows" / "talk.toml").write_text(TALK)
    script = scene.folder / "script.json"
    first, second = [{"say": "too big\nOBJECT"}], [{"say": "much better\nAGREE"}]
    members = {
        "council-1-1/writer": [first],
        "council-1-1/helper": [second],
        "council-1-2/writer": [second],
        "council-1-2/helper": [second],
    }
    script.write_text(json.dumps({**json.loads(script.read_text()), "members": members}))
    scene.ok("quest", "new", "Request", "--workflow", "talk")

    over = drained(scene)

    assert over.code == 0, over.err
    assert (scene.root / "a.txt").exists()
    quest = scene.ok("quest", "show", "1", "--json").json
    assert quest["state"] == "complete"
    said = [(one["role"], one["signal"]) for one in quest["said"]]
    assert said == [
        ("planner", "complete"),
        ("talk", "objected"),
        ("planner", "complete"),
        ("council", "agreed"),
        ("planner", "complete"),
    ]
    assert "too big" in quest["said"][1]["words"]
    channels = scene.ok("channel", "list", "--all", "--json").json
    assert [one["name"] for one in channels] == ["council-1-1", "council-1-2"]
    assert {one["state"] for one in channels} == {"closed"}
    decided = [fact for fact in scene.ok("events", "--json").json if fact["trigger"] == "decided"]
    assert [fact["channel"] for fact in decided] == ["council-1-1", "council-1-2"]
