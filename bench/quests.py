"""(k) How close a quest comes to a schedule without any overhead, on 3, 6 and 12 slots.

A plan of 60 steps with random dependencies (seeded) is walked with real git, real processes and the
gate `true`. The workflow is a lean one of its own, so that the figure is about slots and not about
roles: one role builds a step (it sleeps, writes a file and commits it), the gate looks at it, and
the merge queue lands it on the quest's branch. The limit is list scheduling of the work: each sleep
with what the agent and one run of the gate take by themselves (`bench.alone`). It is counted from
the moment the plan is to be walked to the landing of its last step.
"""

import json
from statistics import mean

from bench.alone import measured_alone
from bench.list_schedule import list_schedule_s, lower_bound_s
from bench.makespan import PHASES, moments_of, p95
from bench.random_plans import random_plan
from bench.scene import Scene, made_scene, working
from bench.sizes import Size
from bench.tables import Figure, say, table, title
from crew.runner.quest_start import begin_quest
from crew.store.fact_log import facts_after

STEPS = 60
SLOTS = (3, 6, 12)
SHORTEST_S, LONGEST_S = 1.5, 4.0
REQUEST = "Sixty steps"

WORKFLOW = """\
description = "planned by one, built by others"
most_steps = 100

[roles.planner]
[roles.builder]
retries = 3

[[stages]]
name = "plan"
role = "planner"
plans = true
complete = "walk"

[[stages]]
name = "walk"
steps = true
complete = "done"

[[step_stages]]
name = "build"
role = "builder"
takes_back = true
complete = "ward"

[[step_stages]]
name = "ward"
gate = true
green = "done"
red = "build"
limit = 3
"""


def measure(size: Size) -> list[Figure]:
    steps = min(STEPS, size.tasks // 2)
    title(f"(k) Makespan of a quest of {steps} steps, workflow build → ward")
    durations_s, deps = random_plan(steps, name="s", shortest_s=SHORTEST_S, longest_s=LONGEST_S)
    alone = measured_alone()
    work_s = {step: s + alone.agent_s + alone.gate_s for step, s in durations_s.items()}
    say(
        f"An agent alone takes {1000 * alone.agent_s:.0f} ms besides its sleep, "
        f"a gate alone {1000 * alone.gate_s:.0f} ms.\n"
    )
    rows, figures = [], []
    for slots in SLOTS:
        ideal_s = list_schedule_s(work_s, deps, agents=slots)
        low_s = lower_bound_s(work_s, deps, agents=slots)
        crew_s, phases_s = _walked(durations_s, deps, slots=slots)
        rows.append((slots, low_s, ideal_s, crew_s, ideal_s / crew_s, phases_s))
        name = f"quest: limit of work / crew, {slots} slots"
        figures.append(Figure(name=name, measured=ideal_s / crew_s, aim=0.95, at_least=True))
    _tell(rows)
    return figures


def _walked(
    durations_s: dict[str, float], deps: dict[str, tuple[str, ...]], *, slots: int
) -> tuple[float, list[tuple[float, float]]]:
    """How long the walk took, and of each phase of a step the mean and the 95th percentile."""
    with made_scene([]) as scene:
        _write_quest(scene, durations_s, deps, slots=slots)
        scene.run(slots)
        began_at = _walk_began_at(scene)
        moments = {task: at for task, at in moments_of(scene).items() if task != "1"}
    crew_s = max(at["landed"] for at in moments.values()) - began_at
    spent_s = [[at[end] - at[begin] for at in moments.values()] for _, begin, end in PHASES]
    return crew_s, [(mean(values), p95(values)) for values in spent_s]


def _write_quest(
    scene: Scene, durations_s: dict[str, float], deps: dict[str, tuple[str, ...]], *, slots: int
) -> None:
    steps = [{"id": key, "title": key, "dependencies": deps[key]} for key in durations_s]
    hand_in = f"crew quest plan - <<'END'\n{json.dumps(steps)}\nEND"
    planned = [{"run": hand_in}, {"done": True}]
    tasks = {key: {"as_builder": [working(key, sleep_s=s)]} for key, s in durations_s.items()}
    scene.script.write_text(json.dumps({"tasks": {REQUEST: {"as_planner": [planned]}, **tasks}}))
    folder = scene.repo / ".crew" / "workflows"
    folder.mkdir(parents=True)
    (folder / "lean.toml").write_text(WORKFLOW)
    workplace = scene.workplace
    begin_quest(workplace, REQUEST, workflow="lean", slots=slots)
    workplace.db.close()


def _walk_began_at(scene: Scene) -> float:
    db = scene.workplace.db
    began_at = next(
        fact.at for _, fact in facts_after(db) if fact.kind == "run" and fact.trigger == "let_go"
    )
    db.close()
    return began_at


def _tell(rows: list[tuple[int, float, float, float, float, list[tuple[float, float]]]]) -> None:
    table(
        ("slots", "no schedule is shorter than", "list scheduling", "crew", "work / crew"),
        [
            (f"{slots}", f"{low:.1f} s", f"{ideal:.1f} s", f"{crew:.1f} s", f"{share:.3f}")
            for slots, low, ideal, crew, share, _ in rows
        ],
    )
    table(
        ("phase of a step: mean (95th percentile)", *(f"{row[0]} slots" for row in rows)),
        [
            (name, *(f"{1000 * row[5][n][0]:.0f} ms ({1000 * row[5][n][1]:.0f})" for row in rows))
            for n, (name, _, _) in enumerate(PHASES)
        ],
    )
