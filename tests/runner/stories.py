"""Small scenes that together pass every crash point; each says which names it answers for."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from crew.domain.rows.run import PERSISTED, RunState
from runner.scene import DriverScene, check_the_end

Script = dict[str, Any]


def work(name: str, text: str = "x\n") -> list[dict[str, Any]]:
    return [{"write": {"path": name, "text": text}}, {"commit": f"add {name}"}]


def done(*actions: Any) -> list[Any]:
    return [*actions, {"done": True}]


BOTH = [done({"resolve": "both"})] * 9


@dataclass(frozen=True, kw_only=True)
class Story:
    """A scene told in one go or in pieces; `names` are in the order in which they come up.

    `first` is where it is killed before the death that is looked at, `between` what a person does
    then.
    """

    names: tuple[str, ...]
    script: Script = field(default_factory=dict)
    tasks: tuple[Any, ...] = ()
    config: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    first: str = ""
    between: Callable[[DriverScene], None] = lambda _scene: None
    after: Callable[[DriverScene], None] = lambda _scene: None

    def begin(self, make_scene: Callable[..., DriverScene]) -> tuple[DriverScene, str]:
        scene = make_scene(self.script, tasks=self.tasks, config=self.config, **self.options)
        base = scene.git("rev-parse", "HEAD")
        if self.first:
            scene.run(code=-9, CREW_CRASH_AT=self.first)
            self.between(scene)
        return scene, base

    def end(self, scene: DriverScene, base: str) -> None:
        scene.run()
        check_the_end(scene, base=base, merged=len(self.tasks))
        self.after(scene)


ROAD = Story(
    script={
        "tasks": {
            "one": {
                "steps": [
                    [{"write": {"path": "shared.txt", "text": "one\n"}}],
                    done({"commit": "1"}),
                ],
                "on_conflict": BOTH,
            },
            "two": {
                "steps": [done(*work("shared.txt", "two\n"), *work("b.txt", "BROKEN\n"))],
                "on_red_gate": [done(*work("b.txt", "fine\n"))],
                "on_conflict": BOTH,
            },
        }
    },
    tasks=("one", "two"),
    options={"agents": 2},
    names=(
        "crew.init",
        "files.tighten",
        "git.exclude",
        "tasks.make_folder",
        "tasks.write_temporary",
        "tasks.put_in_place",
        "store.migrate",
        "store.first_set",
        "store.lock",
        "store.drop_requests",
        "store.set",
        "store.index",
        "store.record",
        *("door.make_folder", "door.open", "door.remove"),
        "state.write",
        "git.claim_branch",
        "git.lay_worktree",
        *("git.lay_repository", "git.note_mirror"),
        *("git.store_objects", "git.swap_ref"),
        "git.reset_worktree",
        "git.finish_making",
        "git.renew_repository",
        "git.clear_lock",
        "log.start",
        "agents.write_file",
        "agents.open_log",
        "agents.spawn",
        "agents.append_log",
        "store.doing",
        "git.commit_checkpoint",
        "git.switch_detached",
        "git.write_attributes",
        "git.commit_merge",
        *("git.sweep", "git.lay_head"),
        "git.advance",
        "git.sync_journal",
        "git.sync_lock_index",
        "git.sync_next_index",
        "git.sync_stage_files",
        "git.sync_seen",
        "git.sync_set_aside",
        "git.sync_place",
        "git.sync_refresh",
        "git.sync_install_index",
        "git.sync_log_head",
        "git.sync_place_folders",
        "git.sync_unlock_index",
        "git.sync_delete_staging",
        "git.sync_forget",
        "git.set_aside",
        "git.forget_worktree",
        "git.delete_set_aside",
        "git.delete_ref",
    ),
)

_GIT_DIR = "git_dir=$(git rev-parse --absolute-git-dir)"

LOST = Story(
    script={
        "tasks": {
            "lost": {
                "steps": [
                    [*work("a.txt"), {"write": {"path": "draft.txt", "text": "draft\n"}}],
                    [{"run": 'cd / && find "$CREW_WORKTREE" -mindepth 1 -delete'}],
                    done({"run": "cat draft.txt >> a.txt"}, {"commit": "with the draft"}),
                ]
            },
        }
    },
    tasks=("lost",),
    options={"agents": 1},
    after=lambda scene: _holds(scene, "draft.txt", "draft\n"),
    names=(
        "git.mark_refill",
        "git.point_worktree",
        "git.write_files",
        "git.mark_restoring",
        "git.bring_back",
        "git.unstage",
    ),
)


LOCKED = Story(
    script={
        "tasks": {
            "locked": {
                "steps": [
                    [
                        {"run": f'{_GIT_DIR}; cp "$git_dir/index" "$git_dir/old"'},
                        *work("a.txt"),
                        {"run": f'{_GIT_DIR}; cd "$git_dir"; mv old index; touch index.lock'},
                    ],
                    done(*work("b.txt")),
                ]
            },
        }
    },
    tasks=("locked",),
    options={"agents": 1},
    after=lambda scene: _holds(scene, "a.txt", "x\n"),
    names=("git.reset_index", "git.finish_commit"),
)


def _holds(scene: DriverScene, name: str, text: str) -> None:
    assert (scene.path / name).read_text() == text


HALF_MADE = Story(
    script={
        "tasks": {
            "forgotten": {
                "steps": [
                    [
                        *work("a.txt"),
                        {"write": {"path": "draft.txt", "text": "draft\n"}},
                        {"run": f'{_GIT_DIR}; rm -rf "$git_dir"'},
                    ],
                    done({"commit": "with the draft"}),
                ]
            },
            "forgotten in part": {
                "steps": [
                    [*work("d.txt"), {"run": f'{_GIT_DIR}; rm "$git_dir/HEAD"'}],
                    done(*work("e.txt")),
                ]
            },
            "half made": {
                "steps": [
                    [
                        *work("b.txt"),
                        {
                            "run": f'{_GIT_DIR}; rm "$git_dir/commondir"; cd /; '
                            'find "$CREW_WORKTREE" -mindepth 1 -not -name .git -delete'
                        },
                    ],
                    done(*work("c.txt")),
                ]
            },
        }
    },
    tasks=("forgotten", "forgotten in part", "half made"),
    config='[worktree]\nkind = "linked"\n',
    options={"agents": 3},
    after=lambda scene: _holds(scene, "draft.txt", "draft\n"),
    names=("git.register_worktree", "git.delete_empty"),
)

_ASK = {"run": "crew signal needs-user-input --question 'Which one?'"}
_PARTLY = {"run": "crew signal partially-complete --progress half --continue-at there"}


def check_manifests(scene: DriverScene, *, agree: bool = False) -> None:
    """Whole at any time; and they tell what the store tells once a crew has come to its end."""
    files = (scene.path / ".crew" / "runs").glob("*/manifest.json")
    told = {file.parent.name: json.loads(file.read_text())["state"] for file in files}
    if agree:
        runs = scene.world.runs.values()
        assert told == {run.id: PERSISTED[RunState(run.state)] for run in runs}


SPOKEN = Story(
    script={
        "tasks": {
            "asks": {"steps": [[_ASK]], "on_answer": [done(*work("a.txt"))] * 9},
            "works": {"steps": [done(*work("b.txt"))]},
            "halves": {"steps": [[_PARTLY]], "on_partial": [done(*work("c.txt"))] * 9},
        }
    },
    tasks=("asks", "works", "halves"),
    options={"agents": 1, "answer": "the first"},
    after=lambda scene: check_manifests(scene, agree=True),
    names=("runner.make_secret", "runner.write_manifest"),
)

DEAF_PROGRAM = """
if test -e ../../deaf; then
  echo x > a.txt; git add a.txt; git commit -qm a; echo DONE
else
  trap '' TERM; touch ../../deaf; while :; do sleep 0.2; done
fi
"""

DEAF = Story(
    tasks=("deaf",),
    options={"agents": 1, "kind": "deaf"},
    config='[run]\nbackoff_s = 0.01\nstep_timeout = "1s"\n'
    f"[agents.deaf]\ncommand_template = {json.dumps(DEAF_PROGRAM)}\n",
    names=("agents.signal", "agents.end_step"),
)

_SIMPLE = {"default": {"steps": [done(*work("shared.txt", "new\n"), *work("new.txt"))]}}


UNDONE = Story(
    script=_SIMPLE,
    tasks=("simple",),
    options={"agents": 1},
    first="git.sync_place.after:2",
    names=("git.sync_unplace", "git.sync_put_back"),
)

_EDIT = "written through a file that was open\n"


def _edit_what_was_set_aside(scene: DriverScene) -> None:
    (old,) = (scene.path / ".git" / "crew-sync").glob("*/old/*")
    old.write_text(_EDIT)


def _edit_is_kept(scene: DriverScene) -> None:
    (kept,) = scene.path.glob("shared.txt.before-crew-*")
    assert kept.read_text() == _EDIT


EDITED = Story(
    script=_SIMPLE,
    tasks=("simple",),
    options={"agents": 1},
    first="git.sync_refresh.before",
    between=_edit_what_was_set_aside,
    after=_edit_is_kept,
    names=("git.sync_rescue",),
)

TICKETS = Story(
    script=_SIMPLE,
    tasks=("simple",),
    options={"agents": 1},
    config='[tasks]\nsource = "tk"\n',
    names=("tasks.make_folder", "tasks.write_temporary", "tasks.put_in_place"),
)

FAKE_CLAUDE = f"""#!{sys.executable} -IS
import json, subprocess, sys

def say(**event):
    print(json.dumps({{"session_id": session, **event}}), flush=True)

asked = "--session-id" if "--session-id" in sys.argv else "--resume"
session = sys.argv[sys.argv.index(asked) + 1]
open("a.txt", "w").write("x")
subprocess.run(["git", "add", "-A"])
subprocess.run(["git", "commit", "-qm", "a"])
say(type="system", subtype="init")
say(type="assistant", message={{"id": "m", "content": [{{"type": "text", "text": "DONE"}}]}})
say(
    type="result", subtype="success", is_error=False, result="DONE", total_cost_usd=0.5,
    usage={{}}, terminal_reason="completed",
)
"""

CLAUDE = Story(
    tasks=("simple",),
    options={"agents": 1, "kind": "claude", "programs": {"claude": FAKE_CLAUDE}},
    config='[agents.claude]\ncommand = "PLACE/claude"\n',
    names=("agents.lock_session", "agents.remember_total"),
)

NEAT = Story(
    script={
        "default": {
            "steps": [
                done(
                    {"write": {"path": "noise.txt", "text": "noise\n"}},
                    {"run": 'echo x > "$CREW_TASK_ID.txt"; git add "$CREW_TASK_ID.txt"'},
                    {"commit": "add a file"},
                )
            ]
        }
    },
    tasks=(
        "first",
        {"title": "second", "deps": ["first"]},
        {"title": "third", "deps": ["second"]},
    ),
    options={"agents": 1, "kind": "neat"},
    config='[agents.neat]\ninherit = "scripted"\nexclude_patterns = ["noise.txt"]\n'
    '[worktree]\nkind = "linked"\n',
    after=lambda scene: _is_missing(scene, "noise.txt"),
    names=("git.delete_excludes",),
)


def _is_missing(scene: DriverScene, name: str) -> None:
    assert not (scene.path / name).exists()


_SPARE_IS_MADE = {
    "run": "for n in $(seq 400); do ls ../.spare-*/index >/dev/null 2>&1 && break; sleep 0.05; done"
}
_FIRST_HAS_LANDED = {
    "run": "for n in $(seq 400); do "
    'git -C "$CREW_REPO" cat-file -e refs/crew/landed/main:a.txt && break; sleep 0.05; done'
}

AHEAD = Story(
    script={
        "tasks": {
            "first": {"steps": [done(_SPARE_IS_MADE, *work("a.txt"))]},
            "second": {"steps": [done(_FIRST_HAS_LANDED, *work("b.txt"))]},
            "third": {"steps": [done(*work("c.txt"))]},
        }
    },
    tasks=("first", "second", "third"),
    options={"agents": 1},
    config='[complete]\ncommand = "touch left-by-the-gate"\n'
    '[sandbox]\nmode = "off"\n',  # the steps look for spares and for what landed
    names=("git.make_spare", "git.refresh_spare", "git.place_spare", "git.clean_worktree"),
)

STORIES = {
    "road": ROAD,
    "spoken": SPOKEN,
    "lost": LOST,
    "half made": HALF_MADE,
    "locked": LOCKED,
    "deaf": DEAF,
    "undone": UNDONE,
    "edited": EDITED,
    "tickets": TICKETS,
    "claude": CLAUDE,
    "neat": NEAT,
    "ahead": AHEAD,
}
