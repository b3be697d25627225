"""The description of what a program may reach, read as data: no program runs here."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import crew
from boundary.sandbox_scene import git
from crew.agents.environment import prompt_file, shim_folder
from crew.config.model import AgentSettings
from crew.git.worktrees.worktrees import ensure_worktree
from crew.runner.sandbox.confinement import for_command, for_manager, for_step, limits_of
from crew.runner.sandbox.home_parts import declared, files_named_in, program_folders
from git.conftest import agents_git_dir

HOME = Path("/home/ann")
ENVIRON = {"HOME": str(HOME), "PATH": "/usr/bin"}

TOOLS = """
    .nvm .volta .fnm .asdf .pyenv .rbenv .sdkman .rustup .bun .deno .local/bin .local/lib
    .local/pipx .local/share/uv .local/share/pipx .local/share/mise .local/share/fnm
    .local/share/pnpm .local/share/claude .npm-global .nix-profile .local/state/nix miniconda3
    anaconda3 go/bin .cargo/bin .cargo/env .cargo/config.toml .cargo/registry .cargo/git
"""


def paths(*names):
    return tuple(Path(name) for name in names)


# The home of the person.


def test_of_a_home_a_program_sees_tools_and_the_settings_of_git_alone():
    seen = [path for path in program_folders(ENVIRON) if path.is_relative_to(HOME)]
    assert seen == [HOME / name for name in (*TOOLS.split(), ".gitconfig", ".config/git")]


def test_a_program_sees_crew_and_the_python_that_runs_it():
    own = (sys.prefix, sys.base_prefix, Path(sys.executable).resolve().parent)
    assert program_folders(ENVIRON)[:4] == (*paths(*own), Path(crew.__file__).parent)


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("/opt/node/bin", "/opt/node"),
        ("/opt/node/sbin", "/opt/node"),
        ("/opt/tools", "/opt/tools"),
        ("/bin", "/bin"),
        ("/home/ann/bin", "/home/ann/bin"),
        ("/home/ann/.local/bin", "/home/ann/.local/bin"),
        ("/home/ann/.cargo/bin", "/home/ann/.cargo/bin"),
        ("/home/ann/node/bin", "/home/ann/node"),
        ("/home/ann", None),
        ("/home/ann/.local", None),
        ("/home/ann/.cargo", None),
        ("/", None),
        ("bin", None),
        ("", None),
    ],
)
def test_of_the_path_a_program_sees_installations_but_never_the_home(name, seen):
    rest = program_folders({**ENVIRON, "PATH": name})[
        len(program_folders({**ENVIRON, "PATH": ""})) :
    ]
    assert rest == (paths(seen) if seen else ())


def test_every_folder_of_the_path_counts_and_without_one_the_system_has_its_own():
    several = program_folders({**ENVIRON, "PATH": "x:/opt/a/bin:/:/opt/b"})
    assert several[-2:] == paths("/opt/a", "/opt/b")
    bare = program_folders({"HOME": str(HOME)})
    assert bare[-1:] == program_folders({"HOME": str(HOME), "PATH": os.defpath})[-1:]


def test_an_agent_kind_names_what_it_reads_writes_and_copies(tmp_path):
    kind = AgentSettings(
        name="x",
        adapter="command",
        home_read=("~/.x/settings", "${X_HOME:-.x}/plugins", "${Y_HOME:-.y}/plugins"),
        home_write=(".x/sessions/", ".x/log"),
        home_copy=(".x.json",),
    )
    environ = {"HOME": str(tmp_path), "X_HOME": "/data/x", "Y_HOME": ""}
    parts = declared(kind, environ, root=tmp_path)
    assert parts.readable == (
        *(tmp_path / ".x/settings", Path("/data/x/plugins"), tmp_path / ".y/plugins"),
    )
    assert parts.writable == (tmp_path / ".x/sessions", tmp_path / ".x/log")
    assert parts.copied == (tmp_path / ".x.json",)
    assert (tmp_path / ".x/sessions").is_dir()
    assert not (tmp_path / ".x/log").exists()


@pytest.mark.parametrize(
    "named",
    [
        {"command": "{file}"},
        {"script": "{file}"},
        {"command_template": "run '{file}'"},
        {"interactive_template": "'{file}' --terminal"},
        {"interactive_resume": "'{file}' --resume"},
        {"command_template": "{{{{.RepoRoot}}}}/tool --prompt x"},
        {"args": ("--settings", "{file}")},
        {"env": {"X_SETTINGS": "{file}"}},
    ],
    ids=str,
)
def test_a_file_that_the_configuration_names_is_readable(tmp_path, named):
    file = tmp_path / "a folder" / "tool"
    file.parent.mkdir()
    file.touch()

    def filled(value):
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        if isinstance(value, tuple):
            return tuple(filled(one) for one in value)
        return value.format(file=file)

    kind = replace(AgentSettings(name="x", adapter="command"), **filled(named))
    assert file in declared(kind, ENVIRON, root=file.parent).readable


def test_only_files_named_by_a_full_path_are_readable(tmp_path, monkeypatch):
    for name in ("tool", "it's"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)

    def named(*words):
        return set(files_named_in(words, {"HOME": str(tmp_path)}))

    assert named(f"sh {tmp_path}/tool") == {tmp_path / "tool"}
    assert named("~/tool --fast", None) == {tmp_path / "tool"}
    assert named(f"{tmp_path}/it's") == {tmp_path / "it's"}  # no shell reads it, and it is a file
    assert named("tool", f"{tmp_path}", "/missing", "~/tool 'open") == set()


def test_a_program_of_a_virtual_environment_needs_all_of_it(tmp_path):
    (tmp_path / "bin").mkdir()
    for name in ("bin/tool", "pyvenv.cfg"):
        (tmp_path / name).touch()
    named = (f"{tmp_path}/bin/tool",)
    assert set(files_named_in(named, ENVIRON)) == {tmp_path / "bin/tool", tmp_path}
    (tmp_path / "pyvenv.cfg").unlink()
    assert set(files_named_in(named, ENVIRON)) == {tmp_path / "bin/tool"}


# A step, a gate and the manager.


def step(place, **more):
    return for_step(place.workplace, place.order(**more), place.kind)


def gate(place, **more):
    return for_command(place.workplace, ("true",), place.folder, **more)


def test_a_confined_program_writes_only_where_the_description_says(described):
    for allowed in (
        step(described),
        gate(described),
        for_manager(described.workplace, described.kind),
    ):
        assert not allowed.may_write_anywhere
        assert allowed.has_own_devices
        assert not allowed.has_terminal
    assert described.folder in step(described).writable
    assert described.folder in gate(described).writable


def test_programs_are_found_where_the_path_of_the_kind_leads(described):
    assert set(program_folders(os.environ)) <= set(gate(described).readable)
    described.kind = replace(described.kind, env={"PATH": "/opt/own/bin"})
    assert Path("/opt/own") in step(described).readable
    assert Path("/opt/own") not in gate(described).readable


def test_an_agent_that_only_reads_has_its_folder_held(described):
    allowed = step(described, looks_only=True)
    assert (described.folder in allowed.writable, described.folder in allowed.held) == (False, True)
    assert described.folder not in step(described).held


def test_a_step_has_its_prompt_crew_and_the_door(described):
    allowed, order = step(described), described.order()
    assert allowed.sockets == (described.door,)
    assert {prompt_file(order), shim_folder(order)} <= set(allowed.readable)
    assert not any(
        described.workplace.folder / "scripts" in (one, *one.parents) for one in allowed.readable
    )
    assert described.workplace.folder not in allowed.writable


def test_without_a_door_a_step_reaches_crews_folder(described):
    allowed = step(described, env={})
    assert (allowed.sockets, described.workplace.folder in allowed.writable) == ((), True)
    assert prompt_file(described.order()) not in allowed.readable


def test_a_scripted_agent_keeps_the_number_of_its_step(described):
    sessions = described.workplace.folder / "sessions"
    assert sessions not in step(described).writable
    described.kind = AgentSettings(name="x", adapter="scripted")
    assert sessions in step(described).writable
    assert sessions.is_dir()


def test_an_agent_at_a_terminal_shares_it_and_reads_its_own_prompt_there(described):
    prompt = described.workplace.folder / "scripts" / "task-1-prompt.txt"
    allowed = for_step(
        described.workplace, described.order(), described.kind, terminal_prompt=prompt
    )
    assert allowed.has_terminal
    assert prompt in allowed.readable
    assert prompt.parent not in allowed.readable


def test_the_manager_reads_the_checkout_and_works_with_crew_alone(described):
    described.kind = replace(
        described.kind, home_read=(".r",), home_write=(".w",), home_copy=(".c",)
    )
    allowed = for_manager(described.workplace, described.kind)
    assert described.root in allowed.held
    assert described.root not in allowed.writable
    assert described.workplace.folder in allowed.writable
    home = described.home
    assert home / ".r" in allowed.readable
    assert home / ".w" in allowed.writable
    assert allowed.copied == (home / ".c",)


def test_a_step_has_the_parts_of_the_home_that_its_kind_declares(described):
    described.kind = replace(
        described.kind, home_read=(".r",), home_write=(".w",), home_copy=(".c",)
    )
    allowed, home = step(described), described.home
    assert home / ".r" in allowed.readable
    assert home / ".w" in allowed.writable
    assert allowed.copied == (home / ".c",)


def test_the_environment_of_a_kind_decides_where_its_home_is(described):
    described.kind = replace(described.kind, env={"HOME": "/home/ben"}, home_read=(".r",))
    for allowed in (step(described), for_manager(described.workplace, described.kind)):
        assert Path("/home/ben/.r") in allowed.readable
        assert {Path("/home/ben"), described.home} <= set(allowed.empty)


# What does not exist in the sandbox.


def test_folders_of_the_person_and_of_others_do_not_exist(described):
    hidden = set(gate(described).empty)
    assert hidden >= {*paths("/tmp", "/var/tmp", "/dev/shm", "/run"), described.home}
    place = described.workplace
    assert hidden >= {described.root, described.root / ".git", place.worktrees}


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP", "XDG_RUNTIME_DIR", "TMUX_TMPDIR"])
def test_a_temporary_folder_elsewhere_does_not_exist(described, monkeypatch, name):
    monkeypatch.setenv(name, "/scratch")
    assert Path("/scratch") in gate(described).empty


@pytest.mark.parametrize(
    "name", ["SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "TMUX"]
)
@pytest.mark.parametrize("form", ["{}", "unix://{}", "unix:path={},guid=1", "{},1,0"])
def test_a_socket_of_the_person_does_not_exist(described, monkeypatch, name, form):
    monkeypatch.setenv(name, form.format("/srv/a/socket"))
    assert Path("/srv/a/socket") in gate(described).empty


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:2375", "socket", "/", ""])
def test_an_address_that_is_no_path_hides_nothing(described, monkeypatch, address):
    for name in ("SSH_AUTH_SOCK", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS", "TMUX"):
        monkeypatch.delenv(name, raising=False)
    before = gate(described).empty
    monkeypatch.setenv("DOCKER_HOST", address)
    assert gate(described).empty == before


# The folders of git.


def test_the_objects_and_hooks_of_the_main_repository_are_readable(described):
    common = described.root / ".git"
    (common / "objects" / "info" / "alternates").write_text(
        "# borrowed\n/srv/pool/objects\n\n../own\n"
    )
    for allowed in (step(described), gate(described)):
        assert {common / "objects", common / "hooks"} <= set(allowed.readable)
        assert Path("/srv/pool/objects") in allowed.readable
        assert common / "objects" / "../own" in allowed.readable
        assert allowed.readable.count(common / "objects") == 1
        assert not [path for path in allowed.readable if "borrowed" in path.name]
        assert common not in (*allowed.readable, *allowed.writable)


def test_alternates_that_cannot_be_read_are_none(described):
    objects = described.root / ".git" / "objects"
    for content in (b"\xff\xfe\n", b""):
        (objects / "info" / "alternates").write_bytes(content)
        below = [path for path in gate(described).readable if path.is_relative_to(objects)]
        assert below == [objects]


def test_a_task_s_own_repository_is_writable_and_the_main_one_is_not(described):
    repo, folder = described.workplace.repo, described.workplace.worktrees / "4"
    ensure_worktree(repo, folder, branch="crew-4", base="main")
    for allowed in (
        step(replace(described, folder=folder)),
        for_command(described.workplace, (), folder),
    ):
        assert agents_git_dir(repo, folder) in allowed.writable
        assert {repo.common_dir / "objects", repo.common_dir / "hooks"} <= set(allowed.readable)
        assert repo.common_dir not in allowed.writable


def linked(place):
    git("worktree", "add", "-q", "-b", "crew-3", place.workplace.worktrees / "3", at=place.root)
    return replace(place, folder=place.workplace.worktrees / "3")


def test_a_linked_worktree_commits_into_the_main_repository_whose_settings_are_held(described):
    place = linked(described)
    common = place.root / ".git"
    for allowed in (step(place), gate(place, may_commit=True)):
        assert common in allowed.writable
        assert {common / "config", common / "hooks", common / "info"} <= set(allowed.held)
        assert common not in allowed.held


def test_a_gate_in_a_linked_worktree_only_reads_the_main_repository(described):
    place = linked(described)
    allowed = gate(place)
    assert place.root / ".git" in allowed.readable
    assert place.root / ".git" not in allowed.writable


# What the configuration allows.


def test_the_configuration_adds_paths_and_limits(described):
    described.configure(
        '[sandbox]\nallow_read = ["~/r", "data"]\nallow_write = ["/srv/w"]\n'
        "network = false\nmemory_mb = 200\nmax_processes = 30\n"
    )
    allowed = step(described)
    assert allowed.readable[-2:] == (described.home / "r", described.root / "data")
    assert allowed.writable[-1:] == paths("/srv/w")
    assert (allowed.has_network, allowed.memory_mb, allowed.max_processes) == (False, 200, 30)
    assert limits_of(described.workplace).may_write_anywhere


def test_a_list_of_hosts_is_the_network_of_every_program(described):
    described.configure('[sandbox]\nnetwork = ["x.org", "127.0.0.1:3128", "localhost:5432"]\n')
    env = {**described.order().env, "CREW_MCP_URL": "http://127.0.0.1:4321/mcp"}
    allowed = step(described, env=env)
    assert not allowed.has_network
    way = allowed.by_proxy
    assert (way.port, way.own_ports) == (3129, (3128, 5432, 4321))
    without_mcp = replace(way, own_ports=(3128, 5432))
    manager = for_manager(described.workplace, described.kind)
    for other in (gate(described), manager, limits_of(described.workplace)):
        assert (other.has_network, other.by_proxy) == (False, without_mcp)
    described.configure('[sandbox]\nnetwork = ["x.org"]\n')
    assert step(described).by_proxy.socket.parent != way.socket.parent
    described.configure("[sandbox]\nnetwork = true\n")
    assert (step(described).has_network, step(described).by_proxy) == (True, None)


def test_what_a_gate_names_is_readable(described, tmp_path):
    (tmp_path / "check").touch()
    allowed = for_command(described.workplace, (f"{tmp_path}/check",), described.folder)
    assert tmp_path / "check" in allowed.readable


def test_without_a_sandbox_only_limits_are_left(described):
    described.configure('[sandbox]\nmode = "off"\nmemory_mb = 200\n')
    assert step(described) == limits_of(described.workplace)


def test_the_resolver_and_the_folders_of_nixos_stay_readable(described):
    system = ("/etc/resolv.conf", "/run/current-system", "/run/wrappers", "/run/opengl-driver")
    assert set(paths(*system)) <= set(gate(described).readable)


def test_folders_that_worktrees_share_are_held(described):
    (described.root / "node_modules").mkdir()
    described.configure('[worktree]\nlink = ["node_modules"]\n')
    assert described.root / "node_modules" in gate(described).held
