"""Names, links and folders that Python refuses or recurses into hold up only their own task."""

import pytest

from crew.system.deep_folders import delete_folder

AGENT = """\
if [ "$CREW_TASK_ID" = 1 ]; then
  [ -e "$SCENE/acted" ] || { touch "$SCENE/acted"; . "$SCENE/act"; exit 0; }
fi
cd "$CREW_WORKTREE"
echo "$CREW_TASK_ID" > "file-$CREW_TASK_ID"
git add -A && git commit -q -m "task $CREW_TASK_ID"
echo DONE
"""
DEEP = (
    'python3 -c \'\nimport os\nfor _ in range(1500):\n    os.mkdir("a")\n    os.chdir("a")\n'
    'open("f", "w")\'\n'
)
INNER = "git init -q n; git -C n commit -q --allow-empty -m x; cd n"
LEFT = {
    "a name that is no text": "printf x > \"$(printf 'a\\377b')\"",
    "a repository whose name is no text": "git init -q \"$(printf 'n\\n\\377')\"",
    "a NUL byte as common folder": f"{INNER}; printf 'x\\0y' > .git/commondir",
    "a loop as common folder": f"{INNER}; ln -s loop .git/loop; printf loop > .git/commondir",
    "a loop among the objects": f"{INNER}; ln -s l l\necho ../../l > .git/objects/info/alternates",
    "a NUL byte as git dir": "rm .git; printf 'gitdir: a\\0b\\n' > .git",
    "a loop as git dir": "rm .git; ln -s l l; printf 'gitdir: l/x\\n' > .git",
}


@pytest.fixture
def odd(scene):
    """A crew whose first task leaves something odd, and whose second is sound."""

    def run(act: str, gate: str = "true"):
        (scene.folder / "agent.sh").write_text(AGENT)
        (scene.folder / "act").write_text(f"{act}\necho DONE\n")
        scene.configure(f'[sandbox]\nmode = "off"\n[complete]\ncommand = "{gate}"\n')
        scene.ok("new", "--title", "odd")
        scene.ok("new", "--title", "sound")
        said = scene.crew("run", "--drain", "--agents", "2")
        assert "fault in crew" not in said.err, said.err
        assert scene.status("2") == "merged", said.err
        for command in ("show", "diff"):
            scene.crew(command, "1")
        return scene

    yield run
    scene.end()
    delete_folder(scene.root.parent / "my repo-worktrees")  # pytest would recurse too deep


@pytest.mark.parametrize("left", LEFT)
def test_what_one_agent_leaves_holds_up_no_other(odd, left):
    scene = odd(LEFT[left])
    assert scene.status("1") in {"merged", "error"}
    assert scene.crew("doctor").code == 0


def test_a_folder_too_deep_for_recursion_is_deleted(odd):
    scene = odd(f'{DEEP}cd "$CREW_WORKTREE"; echo a > .gitignore; git add -A; git commit -qm x')
    assert scene.status("1") == "merged"
    assert list(scene.root.parent.glob("my repo-worktrees/.*gone*")) == []


COMMITTED = {
    "a folder too deep for recursion": f'{DEEP}cd "$CREW_WORKTREE"; git add .; git commit -qm x',
    "a path too long for a checkout": (
        'name=$(printf "%0250d" 0); path=$name/$name/$name/$name/$name\n'
        'mkdir -p $path; echo x > "$path/$(printf "a\\nb")"; git add -A; git commit -qm long'
    ),
}


@pytest.mark.parametrize("committed", COMMITTED)
def test_a_commit_that_no_checkout_can_take_does_not_land(odd, committed):
    scene = odd(COMMITTED[committed])
    assert scene.status("1") == "error"
    assert scene.crew("doctor").code == 0
