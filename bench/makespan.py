"""(a) How close a crew comes to a schedule without any overhead, and how a polling loop does.

Scripted tasks with random dependencies (seeded) run on 8 agents with real git, real processes and
the gate `true`. Each task is one step that sleeps, writes a file and commits it. The limit is list
scheduling, counted in two ways. The raw limit counts the sleeps alone, as if an agent started and
committed, and a gate ran, in no time. The limit of work adds to each sleep what the agent and one
run of the gate take by themselves (`bench.alone`, in the same run of the bench): what is left is
what crew adds, the competition of eight agents for the machine included. The same tasks then run
under `bench.polling`, which looks once a second.
"""

from collections import defaultdict
from statistics import mean, quantiles

from bench.alone import measured_alone
from bench.list_schedule import list_schedule_s, lower_bound_s
from bench.polling import polled_makespan_s
from bench.random_plans import random_plan
from bench.scene import Scene, ScriptedTask, made_scene, working
from bench.sizes import Size
from bench.tables import Figure, say, table, title
from crew.store.fact_log import facts_after

AGENTS = 8
SHORTEST_S, LONGEST_S = 2.0, 6.0

PHASES = (
    ("worktree made", "started", "prepared"),
    ("agent started", "prepared", "process_started"),
    ("agent runs", "process_started", "step_ended"),
    ("gate, agent free", "step_ended", "completed"),
    ("queue, gate, landed", "completed", "landed"),
)


def measure(size: Size) -> list[Figure]:
    title(f"(a) Makespan of {size.tasks} tasks on {AGENTS} agents")
    durations_s, deps = random_plan(
        size.tasks, name="task", shortest_s=SHORTEST_S, longest_s=LONGEST_S
    )
    tasks = [
        ScriptedTask(title=t, steps=[working(t, sleep_s=s)], deps=deps[t])
        for t, s in durations_s.items()
    ]
    alone = measured_alone()
    raw_s = list_schedule_s(durations_s, deps, agents=AGENTS)
    work_s = {task: s + alone.agent_s + alone.gate_s for task, s in durations_s.items()}
    ideal_s = list_schedule_s(work_s, deps, agents=AGENTS)
    with made_scene(tasks) as scene:
        began_at = scene.run(AGENTS)["began_at"]
        moments = moments_of(scene)
        crew_s = max(at["landed"] for at in moments.values()) - began_at
    with made_scene(tasks) as scene:
        polled_s = polled_makespan_s(scene, tasks, agents=AGENTS)
    say(
        f"An agent alone takes {1000 * alone.agent_s:.0f} ms besides its sleep (its start, a file, "
        f"a commit), a gate alone {1000 * alone.gate_s:.0f} ms.\n"
    )
    low_s = lower_bound_s(work_s, deps, agents=AGENTS)
    rows = [
        ("limit of the sleeps alone (raw)", raw_s),
        ("no schedule of the work is shorter than", low_s),
        ("list scheduling of the work: sleep, agent, gate", ideal_s),
        ("crew", crew_s),
        ("polling loop, 1 s", polled_s),
    ]
    _tell(rows, raw_s=raw_s, ideal_s=ideal_s, tasks=size.tasks)
    _tell_phases(moments, mean(durations_s.values()))
    return [
        Figure(
            name="makespan: limit of work / crew",
            measured=ideal_s / crew_s,
            aim=0.95,
            at_least=True,
        ),
        Figure(name="makespan: limit of sleeps / crew", measured=raw_s / crew_s),
        Figure(name="makespan: polling loop / crew", measured=polled_s / crew_s, unit="times"),
        Figure(
            name="overhead per task",
            measured=1000 * _overhead_s(crew_s, ideal_s, size.tasks),
            unit="ms",
        ),
    ]


def moments_of(scene: Scene) -> dict[str, dict[str, float]]:
    """When each task came to each of its moments, the last time it did, by its id."""
    db = scene.workplace.db
    found: dict[str, dict[str, float]] = defaultdict(dict)
    task_of: dict[str, str] = {}
    for _, fact in facts_after(db):
        if fact.kind == "run":
            task_of[fact.subject] = fact.changes.get("task") or task_of[fact.subject]
        if fact.kind == "agent" and fact.trigger == "assigned":
            task_of[f"agent {fact.subject}"] = fact.changes["task"]
        task = {
            "task": fact.subject,
            "run": task_of.get(fact.subject, ""),
            "agent": task_of.get(f"agent {fact.subject}", ""),
        }.get(fact.kind, "")
        found[task][fact.trigger] = fact.at
    db.close()
    return {task: at for task, at in found.items() if "landed" in at and "started" in at}


def _overhead_s(makespan_s: float, ideal_s: float, tasks: int) -> float:
    """The time of an agent that each task took beyond its work."""
    return (makespan_s - ideal_s) * AGENTS / tasks


def _tell(rows: list[tuple[str, float]], *, raw_s: float, ideal_s: float, tasks: int) -> None:
    table(
        ("", "makespan", "sleeps / it", "work / it", "overhead per task"),
        [
            (
                name,
                f"{seconds:.1f} s",
                f"{raw_s / seconds:.3f}",
                f"{ideal_s / seconds:.3f}",
                f"{1000 * _overhead_s(seconds, ideal_s, tasks):.0f} ms",
            )
            for name, seconds in rows
        ],
    )


def _tell_phases(moments: dict[str, dict[str, float]], sleep_s: float) -> None:
    """Where the time of a task goes."""
    rows = []
    for name, begin, end in PHASES:
        spent_s = [at[end] - at[begin] for at in moments.values()]
        rows.append((name, f"{1000 * mean(spent_s):.0f} ms", f"{1000 * p95(spent_s):.0f} ms"))
    table(("phase of a task", "mean", "95th percentile"), rows)
    say(f"An agent sleeps {sleep_s:.2f} s on average; the rest of `agent runs` is its start,")
    say("its commit, the end of its family of processes and the checkpoint after it.")


def p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1]
