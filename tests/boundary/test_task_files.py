"""A task file can be anything that a commit puts there: none hangs crew or leads it away."""

import os
import socket

import pytest

SECRET = "known to the person alone"


def pipe(file):
    os.mkfifo(file)


def bound_socket(file):
    folder = os.open(file.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"/proc/self/fd/{folder}/{file.name}")
    os.close(folder)


def device(file):
    file.symlink_to("/dev/zero")


def link_out(file):
    secret = file.parents[4] / "secret"
    secret.write_text(SECRET)
    file.symlink_to(secret)


def dangling_link(file):
    file.symlink_to("/nowhere")


def folder(file):
    file.mkdir()


def large(file):
    with file.open("wb") as opened:
        opened.truncate(2**33)


def nul_bytes(file):
    file.write_bytes(b"hello\0there")


def no_text(file):
    file.write_bytes(b"\xff\xfe\xff")


CASES = {
    pipe: "is a named pipe",
    bound_socket: "is a socket",
    device: "is a link",
    link_out: "is a link",
    dangling_link: "is a link",
    folder: "is a folder",
    large: "is larger than 4 MiB",
    nul_bytes: "byte 5 is NUL",
    no_text: "is not UTF-8",
}


def test_each_bad_file_is_shown_with_its_reason_and_the_others_work(scene):
    scene.ok("new", "--title", "good")
    tasks = scene.root / ".crew/tasks/default"
    for number, make in enumerate(CASES, start=2):
        scene.ok("new", "--title", f"bad {number}")
        for file in tasks.glob(f"{number}.*"):
            if file.name == f"{number}.meta.json":
                file.unlink()
                make(file)
    listed = {task["id"]: task for task in scene.ok("list", "--json").json}
    assert listed["1"]["status"] == "todo"
    for number, (make, reason) in enumerate(CASES.items(), start=2):
        task = listed[str(number)]
        assert task["status"] == "error", make.__name__
        assert reason in scene.crew("show", str(number)).out, make.__name__
        assert SECRET not in str(task)
    assert scene.crew("run", "--drain").code == 6  # the bad ones are not merged
    assert scene.status("1") == "merged"


@pytest.mark.parametrize("make", [pipe, link_out, nul_bytes])
def test_a_bad_text_of_a_task_is_shown_the_same_way(scene, make):
    scene.ok("new", "--title", "good", "--body", "text")
    file = scene.root / ".crew/tasks/default/1.md"
    file.unlink(missing_ok=True)
    make(file)
    assert scene.ok("list", "--json").json[0]["status"] == "error"
    assert CASES[make] in scene.crew("show", "1").out


def test_a_folder_of_tasks_that_is_a_link_is_refused(scene):
    outside = scene.root.parent / "outside"
    (scene.root / ".crew/tasks/default").rename(outside)
    (scene.root / ".crew/tasks/default").symlink_to(outside)
    said = scene.crew("list")
    assert said.code == 1
    assert "through a link" in said.err


def test_no_unfinished_file_of_a_task_is_written_through_a_link(scene):
    victim = scene.root.parent / "victim"
    victim.write_text("mine\n")
    scene.ok("new", "--title", "one")
    tasks = scene.root / ".crew/tasks/default"
    (tasks / "1.meta.json.crew-tmp").symlink_to(victim)
    scene.ok("close", "1")
    assert victim.read_text() == "mine\n"
    assert scene.status("1") == "closed"


@pytest.mark.parametrize(
    "batch", ['{"../../../victim": "forged"}', '{"1.md": 7}', "[", '{"/tmp/x": ""}', "[" * 10**6]
)
def test_a_forged_batch_of_tasks_writes_nothing(scene, batch):
    file = scene.root / ".crew/new-tasks-default"
    file.write_text(batch)
    scene.ok("new", "--title", "one")
    assert scene.ok("list", "--json").json[0]["title"] == "one"
    assert not (scene.root.parent / "victim").exists()
    assert not file.exists()
