"""One clumsy task stops nobody: whatever an agent does to its repository, the others land."""

import subprocess

import pytest

CLUMSY = {
    "deletes its branch": "git checkout -q --detach; git branch -D crew-$CREW_TASK_ID",
    "checks out main": "git checkout -q main",
    "begins a new history": "git checkout -q --orphan new; git commit -qm root",
    "makes a repository": "rm -f .git; git init -q; git add -A; git commit -qm mine",
    "damages HEAD": 'echo nonsense > "$(git rev-parse --git-dir)/HEAD"',
    "damages its index": 'echo nonsense > "$(git rev-parse --git-dir)/index"',
    "leaves locks": 'cd "$(git rev-parse --git-dir)"; touch HEAD.lock index.lock packed-refs.lock',
    "makes pipes": 'cd "$(git rev-parse --git-dir)"; rm -f HEAD; mkfifo HEAD; exit 9',
    "links its git dir away": "rm -f .git; ln -s /etc .git",
    "deletes its folder": 'cd ..; rm -rf "$CREW_WORKTREE"',
    "becomes a link": 'cd ..; rm -rf "$CREW_WORKTREE"; ln -s "$SCENE" "$CREW_WORKTREE"; exit 9',
    "becomes a file": 'cd ..; rm -rf "$CREW_WORKTREE"; echo x > "$CREW_WORKTREE"; exit 9',
    "deletes all git data": 'rm -rf "$(git rev-parse --git-dir)"',
}

AGENT = """\
if [ ! -e "$SCENE/acted-$CREW_TASK_ID" ]; then
  touch "$SCENE/acted-$CREW_TASK_ID"
  echo mine > "begun-$CREW_TASK_ID"
  sh "$SCENE/act-$CREW_TASK_ID" 2>&1 || [ $? != 9 ] || exit 1
fi
cd "$CREW_WORKTREE"
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""


@pytest.fixture
def clumsy(scene):
    """A crew with one task for each act, and a last one that is sound."""
    (scene.folder / "agent.sh").write_text(AGENT)
    scene.configure('[sandbox]\nmode = "off"\n[complete]\ncommand = "true"\n')
    for number, (title, act) in enumerate(CLUMSY.items(), start=1):
        scene.ok("new", "--title", title)
        (scene.folder / f"act-{number}").write_text(act)
    (scene.folder / f"act-{len(CLUMSY) + 1}").write_text("true")
    scene.ok("new", "--title", "sound")
    return scene


def test_whatever_one_agent_does_the_others_land(clumsy):
    said = clumsy.crew("run", "--drain", "--agents", "4")
    states = {task["title"]: task["status"] for task in clumsy.ok("list", "--all", "--json").json}
    assert states.pop("sound") == "merged", said.err
    sent_back = {"begins a new history", "makes a repository"}
    merged = {title for title, state in states.items() if state == "merged"}
    assert merged >= states.keys() - sent_back, (states, said.err[-3000:])
    assert "file-1\n" in clumsy.git("ls-files") + "\n"
    assert subprocess.run(["git", "fsck", "--strict"], cwd=clumsy.root, check=False).returncode == 0
    assert clumsy.crew("doctor").code == 0
    assert "agent.sh" not in clumsy.git("log", "--all", "--name-only", "--format=")


def test_a_commit_of_crew_s_own_files_is_sent_back_and_holds_up_nobody(scene):
    """Landed, it would be in the way of the person's file, and of every delivery."""
    (scene.folder / "agent.sh").write_text(AGENT)
    for number, act in enumerate(
        ("mkdir -p .crew; echo x > .crew/config.toml; git add -f .crew", "true")
    ):
        scene.ok("new", "--title", f"task {number}")
        (scene.folder / f"act-{number + 1}").write_text(act)
    scene.crew("run", "--drain")
    assert scene.status("2") == "merged"
    assert scene.status("1") != "merged"
    assert scene.git("ls-files", ".crew/config.toml") == ""
