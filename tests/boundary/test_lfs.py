"""git-lfs from end to end: agents and gates have contents, and landings bring them to a person."""

import hashlib
import shutil
import subprocess

import pytest

from agents.conftest import need
from crew.system.processes.process import working_bwrap

AGENT = """\
step=$(($(cat "$SCENE/steps-$CREW_TASK_ID" 2>/dev/null || echo 0) + 1))
echo "$step" > "$SCENE/steps-$CREW_TASK_ID"
cat "$CREW_PROMPT_FILE" > "$SCENE/prompt-$CREW_TASK_ID-$step"
cp a.bin "$SCENE/seen-$CREW_TASK_ID-$step"
. "$SCENE/act-$CREW_TASK_ID-$step" > "$SCENE/said-$CREW_TASK_ID-$step" 2>&1
git status --porcelain > "$SCENE/status-$CREW_TASK_ID-$step"
echo DONE
"""
GATE = '! grep -lr "^oid sha256" --include="*.bin" . && wc -c < a.bin >> "$SCENE/gates"'
FIRST = b"first\0" * 40_000


def content(word: str) -> bytes:
    return word.encode() * 50_000


def writes(name: str, word: str) -> str:
    many = f"yes {word} | tr -d '\\n' | head -c {50_000 * len(word)} > {name}"
    return f"{many}; git add -A && git commit -q -m {word}\n"


@pytest.fixture(params=["strict", "off"])
def large(scene, request):
    """A crew in a repository with a file in git-lfs; its agents do what `act` files say."""
    need(shutil.which("git-lfs"), "git-lfs")
    if request.param == "strict":
        need(working_bwrap(), "bwrap")
    subprocess.run(["git", "lfs", "install"], cwd=scene.root, check=True, capture_output=True)
    scene.git("lfs", "track", "*.bin")
    (scene.root / "a.bin").write_bytes(FIRST)
    scene.git("add", "-A")
    scene.git("commit", "-q", "-m", "large")
    (scene.folder / "agent.sh").write_text(AGENT)
    gate = GATE.replace("$SCENE", str(scene.folder)).replace('"', '\\"')
    scene.configure(
        f'[complete]\ncommand = "{gate}"\n[sandbox]\nmode = "{request.param}"\n'
        f'allow_write = ["{scene.folder}"]\n'
    )
    return scene


def act(scene, task: str, *steps: str) -> None:
    scene.ok("new", "--title", f"task {task}")
    for number, text in enumerate(steps, start=1):
        (scene.folder / f"act-{task}-{number}").write_text(text)


def read(scene, name: str) -> bytes:
    return (scene.folder / name).read_bytes()


def oid(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


def test_two_tasks_change_large_files_which_land_and_are_delivered_with_content(large):
    act(large, "1", writes("a.bin", "one"))
    act(large, "2", writes("b.bin", "two"))
    large.crew("run", "--drain")
    assert [large.status(task) for task in "12"] == ["merged", "merged"]
    assert read(large, "seen-1-1") == FIRST
    assert (large.root / "a.bin").read_bytes() == content("one")
    assert (large.root / "b.bin").read_bytes() == content("two")
    assert large.git("status", "--porcelain", "--", "*.bin") == ""
    assert oid(content("one")) in large.git("show", "main:a.bin")
    assert b"" == read(large, "status-1-1") == read(large, "status-2-1")
    assert read(large, "gates").split()[-1:] == [b"150000"]
    large.git("lfs", "fsck")


def test_a_conflict_in_a_large_file_is_told_as_binary_and_one_side_lands(large):
    act(large, "1", writes("a.bin", "one"))
    act(
        large,
        "2",
        writes("a.bin", "two"),
        "git merge main || git checkout --ours a.bin\ngit add a.bin; git commit -q -m merged\n",
    )
    large.crew("run", "--drain")
    assert [large.status(task) for task in "12"] == ["merged", "merged"]
    assert b"CONFLICT (binary): a.bin" in read(large, "prompt-2-2")
    assert b"<<<<<<<" not in read(large, "prompt-2-2").partition(b"a.bin")[2].partition(b"\n\n")[0]
    assert (large.root / "a.bin").read_bytes() in (content("one"), content("two"))


def test_git_lfs_pull_works_in_a_step_and_finds_everything_here(large):
    act(large, "1", "git lfs pull && git lfs ls-files\n" + writes("a.bin", "one"))
    large.crew("run", "--drain")
    assert large.status("1") == "merged"
    assert b"* a.bin" in read(large, "said-1-1")


FORGE = """\
printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%s\\nsize 9\\n' "{oid}" > pointer
git update-index --add --cacheinfo 100644,$(git hash-object -w pointer),a.bin
rm pointer; git commit -q -m forged
"""


def test_an_agent_that_forges_a_pointer_is_told_and_nothing_lands(large):
    act(
        large,
        "1",
        FORGE.format(oid="0" * 64),
        "git reset -q --hard HEAD~1\n" + writes("a.bin", "one"),
    )
    large.crew("run", "--drain")
    assert b"cannot take in a.bin of git-lfs" in read(large, "prompt-1-2")
    assert large.status("1") == "merged"
    assert "0" * 64 not in large.git("log", "-p", "main")
    assert (large.root / "a.bin").read_bytes() == content("one")


@pytest.mark.parametrize("large", ["strict"], indirect=True)
def test_the_store_of_the_person_cannot_be_written_in_the_sandbox(large):
    file = large.root / ".git/lfs/objects" / oid(FIRST)[:2] / oid(FIRST)[2:4] / oid(FIRST)
    act(large, "1", f"echo x > '{file}'; rm -rf '{large.root}/.git/lfs'\n" + writes("a.bin", "one"))
    large.crew("run", "--drain")
    assert file.read_bytes() == FIRST
    assert large.status("1") == "merged"


def test_doctor_and_init_name_what_is_missing(large):
    checks = {one["check"]: one for one in large.crew("--json", "doctor").json}
    assert checks["git-lfs"]["state"] == "ok"
    shutil.rmtree(large.root / ".git/lfs/objects")
    checks = {one["check"]: one for one in large.crew("--json", "doctor").json}
    assert "a.bin" in checks["git-lfs"]["message"]
    assert "lfs fetch origin main" in checks["git-lfs"]["fix"]
    assert "lfs fetch origin main" in large.ok("init").out
    large.git("config", "--global", "--remove-section", "filter.lfs")
    checks = {one["check"]: one for one in large.crew("--json", "doctor").json}
    assert "git lfs install" in checks["git-lfs"]["fix"]


def test_a_task_without_contents_says_so_before_its_first_step(large):
    shutil.move(large.root / ".git/lfs/objects", large.folder / "objects")
    (large.root / ".git/lfs/objects").mkdir()
    act(large, "1", writes("a.bin", "one"))
    large.crew("run", "--drain")
    assert not (large.folder / "steps-1").exists()
    assert "lfs fetch origin" in large.ok("show", "1").out + large.ok("ps").out
