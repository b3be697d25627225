"""What a program in crew's sandbox can reach, tried from inside with real bubblewrap and git."""

import ctypes
import http.server
import os
import socket
import sys
import threading
import uuid
from pathlib import Path

import pytest

from agents.conftest import need
from boundary.sandbox_scene import SECRETS, git
from crew.agents.terminal.terminal_script import write_session_prompt
from crew.domain.kernel.errors import CrewError
from crew.git.worktrees.worktrees import ensure_worktree
from crew.runner.outside.local_machine import LocalOutside
from crew.runner.sandbox.confinement import for_command
from crew.runner.sandbox.level import load_level, sandbox_finding
from crew.system.processes import process
from crew.system.processes.process import load_wrapper, working_bwrap
from crew.system.sandbox.seal import KEYS, SOCKETS

CONNECT = (
    f"{sys.executable} -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])'"
)

CONNECT_ABSTRACT = """
import socket, sys
def tried(name):
    try:
        socket.socket(socket.AF_UNIX).connect(name)
    except PermissionError:
        return 'refused'
    return 'own' if name.endswith('-own') else 'reached'
name = chr(0) + sys.argv[1]
own = socket.socket(socket.AF_UNIX)
own.bind(name + '-own')
own.listen()
print(tried(name + '-own'))
print(tried(name))
"""

READ_KEY = """
import ctypes, sys
add, request, control, key = map(int, sys.argv[2:])
call, read = ctypes.CDLL(None).syscall, ctypes.create_string_buffer(9)
name = sys.argv[1].encode()
found = call(request, b'user', name, None, 0)
made = call(add, b'user', name, b'x', 1, -3)
call(control, 11, key, read, 9)
print(found, made, read.value)
"""
OF_THE_SESSION, UNLINK = -3, 9

READS = {
    **{f"~/{name}": f'cat "$HOME/{name}"' for name in SECRETS},
    "the checkout": 'cat "$CREW_REPO/mine"',
    "the checkout's commits": 'cat "$CREW_REPO/.git/HEAD"',
    "crew's folder": 'ls "$CREW_REPO/.crew/tasks"',
    "crew's database": 'cat "$CREW_REPO/.crew/crew.db"',
    "another task": "cat ../2/theirs",
    "the prompts of others": 'cat "$CREW_REPO"/.crew/scripts/*',
    "temporary files of others": 'cat "$CREW_REPO/../loose"',
    "processes of others": f"test -e /proc/{os.getppid()}/environ -o -e /proc/{os.getpid()}/fd",
}

WRITES = {
    "~/.gitconfig": 'echo "[alias] x = !evil" >> "$HOME/.gitconfig"',
    "the person's git by `git config --global`": "git config --global core.pager evil",
    "the main repository's objects": 'echo x > "$CREW_REPO/.git/objects/evil"',
    "the main repository's hooks": 'echo x > "$CREW_REPO/.git/hooks/post-commit"',
    "the system": "touch /usr/evil || touch /etc/evil",
    "the prompt": 'echo x > "$CREW_PROMPT_FILE"',
    "crew's own command": 'echo x > "$(command -v crew)"',
}


@pytest.mark.parametrize("what", READS)
def test_a_step_cannot_read(place, what):
    said = place.step(READS[what])
    assert said.code != 0, said.out
    assert "secret" not in said.out


@pytest.mark.parametrize("what", READS)
def test_a_gate_cannot_read(place, what):
    assert place.gate(READS[what]).code != 0


@pytest.mark.parametrize("what", WRITES)
def test_a_step_cannot_write(place, what):
    said = place.step(WRITES[what])
    assert said.code != 0, said.out


def test_git_in_a_step_does_not_read_unchanged_files_again(place):
    """Root's files have another owner in the sandbox, and the task's index names that one."""
    place.folder = place.workplace.worktrees / "3"
    base = git("rev-parse", "HEAD", at=place.root)
    repo = LocalOutside(place.workplace).workplace.repo
    ensure_worktree(repo, place.folder, branch="crew-3", base=base)
    said = place.step("git diff-files --name-only; git ls-files")
    assert (said.code, said.out.split()) == (0, ["readme"])


def test_what_a_step_writes_at_home_and_in_temporary_folders_is_gone(place, tmp_path):
    names = ('"$HOME/.bashrc"', '"$HOME/.profile"', "/tmp/crew-left", "/var/tmp/crew-left")
    said = place.step("; ".join(f"echo evil > {name}" for name in (*names, "/dev/shm/crew-left")))
    assert said.code == 0, said.out
    assert (place.home / ".bashrc").read_text() == "secret\n"
    assert not (place.home / ".profile").exists()
    assert not any(Path(f"{one}/crew-left").exists() for one in ("/tmp", "/var/tmp", "/dev/shm"))
    assert (place.root / "mine").read_text() == "not committed\n"


def test_a_step_reads_its_prompt_runs_crew_and_commits_as_the_person(place, door):
    said = place.step(
        'cat "$CREW_PROMPT_FILE" && crew --version && echo x > new && git add new '
        f'&& git commit -qm work && git log --format=%an -1 && {CONNECT} "$CREW_DOOR"'
    )
    assert said.code == 0, said.out
    assert said.out.startswith("do it")
    assert said.out.splitlines()[-1] == "Ann"
    assert git("log", "--format=%s", at=place.folder) == "work\nfirst"


def test_an_agent_at_a_terminal_reads_its_own_prompt_and_no_other(place):
    prompt = write_session_prompt(place.workplace.folder, "task-1", "do it here\n")
    said = place.at_a_terminal(f"ls '{prompt.parent}' && cat '{prompt}'", prompt)
    assert (said.code, said.out) == (0, "task-1-prompt.txt\ndo it here\n")


def test_a_gate_writes_in_its_own_folder_only(place):
    said = place.gate('echo x > made; echo x > ../2/evil; echo x > "$CREW_REPO/evil"; ls')
    assert "made" in said.out.splitlines()
    assert sorted(path.name for path in (place.workplace.worktrees / "2").iterdir()) == ["theirs"]
    assert not (place.root / "evil").exists()


def test_an_agent_that_only_reads_cannot_write_in_its_folder(place):
    said = place.step("cat readme && ! echo x > evil", looks_only=True)
    assert said.code == 0, said.out
    assert not (place.folder / "evil").exists()


def test_sockets_of_the_person_cannot_be_reached(place, tmp_path, monkeypatch):
    own = tmp_path.parent / f"{tmp_path.name[:8]}-{place.mode}"
    connect = f'{CONNECT} "{own}"'
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(own))
        server.listen()
        assert place.step(connect).code != 0
        place.configure(f'[sandbox]\nallow_write = ["{own.parent}"]\n')
        assert place.step(connect).code == 0
        monkeypatch.setenv("TMUX", f"{own},1,0")
        assert place.step(connect).code != 0


@pytest.fixture
def closed(place) -> frozenset[str]:
    """What the seal closes on this machine."""
    return load_wrapper("auto", for_command(place.workplace, ("true",), place.folder)).closed


def test_abstract_sockets_of_others_cannot_be_reached_and_its_own_can(place, closed):
    if SOCKETS not in closed:
        pytest.skip("this kernel is older than Linux 6.12")
    name = f"crew-{uuid.uuid4().hex}"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as caller:
        server.bind(f"\0{name}")
        server.listen()
        caller.connect(f"\0{name}")
        for run in (place.step, place.gate, place.by_hand):
            said = run(f'exec {sys.executable} -c "{CONNECT_ABSTRACT}" {name}')
            assert (said.code, said.out) == (0, "own\nrefused\n")


def test_keys_of_the_person_cannot_be_read(place, closed):
    if KEYS not in closed:
        pytest.skip("no filter of system calls for this kind of machine")
    numbers = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]
    call, name = ctypes.CDLL(None).syscall, f"crew-{uuid.uuid4().hex}"
    key = call(numbers[0], b"user", name.encode(), b"s3cret", 6, OF_THE_SESSION)
    assert key > 0, "no key can be made here"
    try:
        for run in (place.step, place.gate, place.by_hand):
            words = " ".join(map(str, (name, *numbers, key)))
            said = run(f'exec {sys.executable} -c "{READ_KEY}" {words}')
            assert (said.code, said.out) == (0, "-1 -1 b''\n")
    finally:
        call(numbers[2], UNLINK, key, OF_THE_SESSION)


def test_without_network_even_the_loopback_is_out_of_reach(place):
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        address = f"('127.0.0.1', {server.server_port})"
        connect = f'{sys.executable} -c "import socket; socket.create_connection({address}, 5)"'
        assert place.step(connect).code == 0
        place.configure("[sandbox]\nnetwork = false\n")
        assert "refused" in place.step(connect).out
        assert place.gate(connect).code != 0
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_the_config_allows_is_allowed(place, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "a").write_text("a\n")
    place.configure(f'[sandbox]\nallow_read = ["~/.netrc", "mine"]\nallow_write = ["{shared}"]\n')
    said = place.step(f'cat "$HOME/.netrc" "$CREW_REPO/mine" && echo b > "{shared}/a"')
    assert (said.code, said.out) == (0, "secret\nnot committed\n")
    assert (shared / "a").read_text() == "b\n"
    assert place.step('echo x >> "$HOME/.netrc"').code != 0
    assert not (place.root / "evil").exists()


def test_a_limit_of_memory_holds(place):
    eat = f'{sys.executable} -c "x = bytearray(300 << 20)"'
    assert place.step(eat).code == 0
    place.configure("[sandbox]\nmemory_mb = 200\n")
    assert "MemoryError" in place.step(eat).out


def test_no_capability_is_left_and_names_of_the_machine_are_its_own(place):
    said = place.step(
        "grep ^CapEff /proc/self/status; readlink /proc/self/ns/ipc /proc/self/ns/uts"
    )
    outside = {str(Path(f"/proc/self/ns/{name}").readlink()) for name in ("ipc", "uts")}
    assert said.out.split()[1] == "0" * 16
    assert outside.isdisjoint(said.out.split())


def test_a_step_without_a_door_still_reaches_crews_folder(place):
    assert place.step('ls "$CREW_REPO/.crew/crew.db"', env={"CREW_REPO": str(place.root)}).code == 0


def test_a_closed_socket_does_not_stop_a_step(place):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place.door))
    assert place.step("true").code == 0


PROBE = (
    'cat \\"$HOME/.ssh/id_x\\" ../2/theirs >> {seen}; echo x > \\"$HOME/.bashrc\\"; touch ../evil; '
    'ls -A \\"{root}\\" >> {seen}; true'
)


def test_the_step_the_gate_and_the_setup_of_a_run_are_confined(scene, monkeypatch):
    need(working_bwrap(), "bwrap")
    monkeypatch.setenv("CREW_SANDBOX_ALLOW_WRITE", str(scene.folder))
    home, seen = Path(os.environ["HOME"]), scene.folder / "seen"
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_x").write_text("secret\n")
    probe = PROBE.format(seen=seen, root=scene.root)
    agent = scene.folder / "agent.sh"
    agent.write_text(probe.replace("\\", "") + "\n" + agent.read_text())
    scene.configure(f'[worktree]\nsetup_command = "{probe}"\n[complete]\ncommand = "{probe}"\n')
    scene.ok("new", "--title", "one")
    said = scene.ok("run", "--drain", "--agents", "1")
    assert "sandbox: bubblewrap confines steps, reviews, gates" in said.err
    assert scene.status("1") == "merged"
    assert set(seen.read_text().split()) <= {".git", ".crew"}
    assert not (home / ".bashrc").exists()
    assert not (scene.root.parent / f"{scene.root.name}-worktrees" / "evil").exists()


def test_strict_runs_nothing_without_a_sandbox_and_auto_prints_that_there_is_none(
    described, monkeypatch
):
    described.mode = "auto"
    monkeypatch.setattr("crew.system.processes.process.working_bwrap", lambda: None)
    assert "no sandbox works here" in load_level(described.workplace).words
    for mode in ("strict", "bwrap"):
        described.configure(f'[sandbox]\nmode = "{mode}"\n')
        with pytest.raises(CrewError, match=f'mode = "{mode}" runs nothing without one'):
            load_level(described.workplace)
        finding = sandbox_finding(described.workplace)
        assert (finding.check, finding.is_wrong) == ("sandbox", True)
    described.configure("[sandbox]\nnetwork = false\n")
    with pytest.raises(CrewError, match="network = false needs a sandbox"):
        load_level(described.workplace)
    described.configure('[sandbox]\nnetwork = ["x.org"]\n')
    with pytest.raises(CrewError, match="a list of hosts as network needs a sandbox"):
        load_level(described.workplace)


@pytest.fixture
def seal_of(monkeypatch):
    """Sets what the seal closes."""

    def set_to(*closed):
        monkeypatch.setattr(process, "_closed_by_seal", lambda _bwrap: frozenset(closed))

    return set_to


def test_the_level_names_what_no_seal_closes_here(place, seal_of):
    seal_of()
    assert load_level(place.workplace).words.endswith(
        "the login of its own CLI, the person's keys in the kernel, "
        "abstract sockets, such as those of X11 and dbus"
    )
    seal_of(KEYS)
    assert load_level(place.workplace).words.endswith(f"CLI, {SOCKETS}")
    place.configure("[sandbox]\nnetwork = false\n")
    assert SOCKETS not in load_level(place.workplace).words
    seal_of(SOCKETS)
    assert load_level(place.workplace).words.endswith(f"CLI, {KEYS}")


def test_the_level_names_what_is_not_confined(place, seal_of):
    seal_of(KEYS, SOCKETS)
    assert load_level(place.workplace).words.endswith(
        "not confined: the network, the login of its own CLI"
    )
    place.configure(
        '[sandbox]\nnetwork = false\nallow_write = ["x"]\n[worktree]\nkind = "linked"\n'
    )
    assert load_level(place.workplace).words.endswith(
        "not confined: the login of its own CLI, the repository's .git (linked worktrees), "
        "what [sandbox] allow_write names"
    )
    place.configure('[sandbox]\nnetwork = ["x.org"]\n')
    assert "not confined: the hosts that [sandbox] network names, " in (
        load_level(place.workplace).words
    )
    place.configure("[sandbox]\nnetwork = []\n")
    assert "network" not in load_level(place.workplace).words
    place.configure('[sandbox]\nmode = "off"\n')
    off = load_level(place.workplace)
    assert off.words.startswith("the sandbox is off")
    finding = sandbox_finding(place.workplace)
    assert (finding.check, finding.is_wrong) == ("sandbox", False)
    assert (finding.message, finding.fix) == (off.words, off.fix)
