"""Whatever an agent and its code in a gate do with refs and folders, no red commit reaches main."""

import pytest

from agents.conftest import need
from crew.system.processes.process import working_bwrap

ATTACK = """\
repo="$CREW_REPO" other="../other"
echo evil > red; git add -A; git commit -q -m red
git update-ref refs/crew/landed/main HEAD
git branch -f main HEAD
git -C "$repo" update-ref refs/crew/landed/main "$(git rev-parse HEAD)"
git -C "$repo" update-ref refs/heads/main "$(git rev-parse HEAD)"
git push -q "$repo" HEAD:refs/heads/main
git --git-dir "$repo/.git" fetch -q . HEAD:refs/heads/main
(cd "$other" && echo evil > red && git add -A && git commit -q -m red)
rm -rf "$other/theirs"
git rev-parse HEAD > "$repo/.git/refs/heads/main"
echo DONE
"""


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_no_red_commit_reaches_main(scene, mode):
    need(working_bwrap(), "bwrap")
    (scene.folder / "agent.sh").write_text(ATTACK)
    (scene.folder / "gate.sh").write_text(f"cd ..; CREW_REPO='{scene.root}'; {ATTACK}")
    gate = f"sh '{scene.folder}/gate.sh' >/dev/null 2>&1; test ! -e red"
    scene.configure(
        f'[sandbox]\nmode = "{mode}"\n[review]\nmax_rounds = 1\n[complete]\ncommand = "{gate}"\n'
    )
    other = scene.root.parent / "my repo-worktrees" / "other"
    other.mkdir(parents=True)
    (other / "theirs").write_text("of another task\n")
    before = scene.git("rev-parse", "main")
    scene.ok("new", "--title", "attack")
    scene.crew("run", "--drain")
    assert scene.status("1") == "error"
    assert scene.git("rev-parse", "main") == before
    landed = scene.git("for-each-ref", "--format=%(objectname)", "refs/crew/landed")
    assert landed in {"", before}
    assert scene.git("log", "--format=%s", "main") == "first"
    assert [file.name for file in other.iterdir()] == ["theirs"]
