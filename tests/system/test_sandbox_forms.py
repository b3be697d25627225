"""One description of what is allowed, as bubblewrap's arguments and as a profile of macOS."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from crew.system.processes.start_command import (
    Wrapper,
    copies_opened,
    start_command,
    terminal_command,
    unmet_limit,
)
from crew.system.sandbox import forwarder, seal
from crew.system.sandbox.allowed import EVERYTHING, Allowed
from crew.system.sandbox.bubblewrap import PROBE, bubblewrap
from crew.system.sandbox.by_proxy import ByProxy
from crew.system.sandbox.mounts import Access, Found, Mount, mounts_of
from crew.system.sandbox.seatbelt import profile, seatbelt

HOME = Path("/home/ann")
WORK = Path("/home/ann/trees/1")


def disk(folders=(), files=(), links=None):
    """A disk that has only these paths; `links` name where a path leads."""
    links = {Path(name): Path(to) for name, to in (links or {}).items()}
    there = {Path(name): True for name in folders} | {Path(name): False for name in files}

    def find(path):
        for name, to in links.items():
            if path.is_relative_to(name):
                return find(to / path.relative_to(name))
        return Found(real=path, is_folder=there[path]) if path in there else None

    return find


def shown(allowed, find):
    return [(one.access.name, str(one.source), str(one.at)) for one in mounts_of(allowed, find)]


def paths(*names):
    return tuple(Path(name) for name in names)


def test_a_folder_is_mounted_before_what_is_inside_it_and_the_rule_of_a_path_is_its_own():
    allowed = Allowed(
        may_write_anywhere=False,
        empty=(HOME,),
        readable=paths("/home/ann/trees"),
        writable=(WORK,),
        held=(WORK / "hooks",),
    )
    find = disk([HOME, HOME / "trees", WORK, WORK / "hooks"])
    assert shown(allowed, find) == [
        ("EMPTY", "/home/ann", "/home/ann"),
        ("READ", "/home/ann/trees", "/home/ann/trees"),
        ("WRITE", "/home/ann/trees/1", "/home/ann/trees/1"),
        ("HELD", "/home/ann/trees/1/hooks", "/home/ann/trees/1/hooks"),
    ]


def test_of_two_rules_for_one_path_the_later_in_the_list_holds():
    one = paths("/one")
    kinds = {"empty": one, "readable": one, "writable": one, "held": one}
    find = disk(["/one"])
    seen = []
    for name in ("held", "writable", "readable"):
        seen.append(mounts_of(Allowed(may_write_anywhere=False, **kinds), find))
        del kinds[name]
    assert [[one.access for one in mounts] for mounts in seen] == [
        [Access.HELD],
        [Access.WRITE],
        [],  # readable, as the disk is
    ]


def test_what_the_folder_around_gives_already_is_not_mounted_again():
    allowed = Allowed(
        may_write_anywhere=False,
        readable=paths("/usr/lib", "/srv/one/a"),
        writable=paths("/srv/one", "/srv/one/b"),
        held=paths("/srv/one/b/c"),
    )
    find = disk(["/usr/lib", "/srv/one", "/srv/one/a", "/srv/one/b", "/srv/one/b/c"])
    assert shown(allowed, find) == [
        ("WRITE", "/srv/one", "/srv/one"),
        ("HELD", "/srv/one/b/c", "/srv/one/b/c"),
    ]


def test_a_readable_path_below_a_held_one_and_a_writable_one_below_a_readable_one():
    allowed = Allowed(
        may_write_anywhere=False,
        empty=paths("/srv"),
        held=paths("/srv/a"),
        readable=paths("/srv/a/b", "/srv/r"),
        writable=paths("/srv/r/w"),
    )
    find = disk(["/srv", "/srv/a", "/srv/a/b", "/srv/r", "/srv/r/w"])
    assert [name for _, name, _ in shown(allowed, find)] == ["/srv", "/srv/a", "/srv/r", "/srv/r/w"]


def test_an_empty_folder_in_an_empty_folder_is_made():
    allowed = Allowed(may_write_anywhere=False, empty=paths("/tmp", "/tmp/home"))
    assert [name for _, name, _ in shown(allowed, disk(["/tmp", "/tmp/home"]))] == [
        "/tmp",
        "/tmp/home",
    ]


def test_paths_that_do_not_exist_are_skipped():
    allowed = Allowed(empty=paths("/a"), readable=paths("/b"), writable=paths("/c"))
    assert mounts_of(allowed, disk()) == ()


def test_a_symlink_below_an_empty_folder_keeps_its_name():
    links = {"/home/ann/.gitconfig": "/data/dots/gitconfig", "/home/ann": "/data/ann"}
    find = disk(["/data/ann"], ["/data/dots/gitconfig"], links)
    allowed = Allowed(may_write_anywhere=False, empty=(HOME,), readable=(HOME / ".gitconfig",))
    assert shown(allowed, find) == [
        ("EMPTY", "/data/ann", "/data/ann"),
        ("READ", "/data/dots/gitconfig", "/data/ann/.gitconfig"),
    ]


def test_a_symlink_deep_below_an_empty_folder_keeps_its_name_too():
    find = disk([HOME], ["/data/settings"], {"/home/ann/.config/tool/settings": "/data/settings"})
    named = paths("/home/ann/.config/tool/settings")
    allowed = Allowed(may_write_anywhere=False, empty=(HOME,), readable=named)
    assert ("READ", "/data/settings", str(named[0])) in shown(allowed, find)


def test_a_device_is_mounted_since_the_disk_around_may_not_give_it():
    devices = Allowed(may_write_anywhere=False, readable=paths("/dev/kvm", "/etc/x"))
    assert shown(devices, disk(files=["/dev/kvm", "/etc/x"])) == [("READ", "/dev/kvm", "/dev/kvm")]


def test_a_symlink_that_a_mounted_folder_brings_along_is_not_covered():
    """Such as the Python of a virtual environment in the home, which a gate names."""
    links = {"/home/ann/venv/bin/python": "/opt/python/bin/python3"}
    find = disk([HOME, "/home/ann/venv"], ["/opt/python/bin/python3", "/home/ann/venv/cfg"], links)
    named = paths("/home/ann/venv", "/home/ann/venv/bin/python", "/home/ann/venv/cfg")
    allowed = Allowed(may_write_anywhere=False, empty=(HOME,), readable=named)
    assert shown(allowed, find) == [
        ("EMPTY", str(HOME), str(HOME)),
        ("READ", "/home/ann/venv", "/home/ann/venv"),
    ]
    hidden = Allowed(
        may_write_anywhere=False, empty=(HOME, *paths("/opt")), readable=named, copied=named[2:]
    )
    find = disk(
        [HOME, "/home/ann/venv", "/opt"],
        ["/opt/python/bin/python3", "/home/ann/venv/cfg"],
        links,
    )
    assert ("READ", "/opt/python/bin/python3", "/opt/python/bin/python3") in shown(hidden, find)
    assert ("COPY", "/home/ann/venv/cfg", "/home/ann/venv/cfg") in shown(hidden, find)


def test_a_path_is_found_below_an_empty_folder_by_its_real_name_too():
    find = disk(["/data/ann", "/data/ann/trees"], links={"/home/ann": "/data/ann"})
    allowed = Allowed(may_write_anywhere=False, empty=(HOME,), writable=paths("/data/ann/trees"))
    assert shown(allowed, find)[1] == ("WRITE", "/data/ann/trees", "/data/ann/trees")


def test_a_symlink_elsewhere_is_mounted_where_it_leads():
    find = disk(["/run/x"], links={"/var/run": "/run"})
    assert shown(Allowed(writable=paths("/var/run/x")), find) == [("WRITE", "/run/x", "/run/x")]


def test_a_copy_is_made_only_in_a_folder_of_the_sandbox():
    files = ["/home/ann/.claude.json", "/etc/x"]
    allowed = Allowed(
        may_write_anywhere=False, empty=(HOME,), copied=paths(*files), writable=paths("/etc")
    )
    assert shown(allowed, disk([HOME, "/etc"], files)) == [
        ("WRITE", "/etc", "/etc"),
        ("EMPTY", "/home/ann", "/home/ann"),
        ("COPY", "/home/ann/.claude.json", "/home/ann/.claude.json"),
    ]


SEALED = " ".join(
    ("--unshare-pid --proc /proc --die-with-parent --cap-drop ALL --unshare-ipc --unshare-uts",)
    + (("--unshare-user --uid 1000 --gid 1000",) if os.getuid() == 0 else ())
)


def wrapped(allowed, *mounts, **more):
    more = {"info_fd": 7, **more}
    argv = bubblewrap(("sh", "-c", "x y"), allowed, mounts, bwrap="bwrap", cwd=WORK, **more)
    assert argv[-3:] == ("sh", "-c", "x y")
    return " ".join(argv[:-3])


def mount(access, at, *, source=None, is_folder=True):
    return Mount(access=access, source=Path(source or at), at=Path(at), is_folder=is_folder)


def test_without_rules_bubblewrap_only_keeps_processes_together():
    assert wrapped(EVERYTHING) == (
        f"bwrap --dev-bind / / {SEALED} --new-session --info-fd 7 --chdir {WORK} --"
    )


def test_the_probe_asks_for_what_every_sandbox_needs():
    assert wrapped(EVERYTHING, info_fd=None) == f"bwrap {' '.join(PROBE)} --chdir {WORK} --"


def test_a_confined_program_in_bubblewraps_words():
    allowed = Allowed(may_write_anywhere=False, has_own_devices=True, has_network=False)
    mounts = (
        mount(Access.EMPTY, "/tmp"),
        mount(Access.EMPTY, "/dev/shm"),
        mount(Access.EMPTY, "/home/ann"),
        mount(Access.EMPTY, "/home/ann/key", is_folder=False),
        mount(Access.READ, "/home/ann/b", source="/data/b"),
        mount(Access.COPY, "/home/ann/c", is_folder=False),
        mount(Access.WRITE, "/home/ann/d e"),
        mount(Access.HELD, "/home/ann/d e/f"),
        mount(Access.WRITE, "/dev/kvm", is_folder=False),
        mount(Access.HELD, "/dev/shm/x"),
    )
    assert wrapped(allowed, *mounts, copy_fds=(9,)) == (
        "bwrap --ro-bind / / --dev /dev "
        "--perms 1777 --tmpfs /tmp --perms 1777 --tmpfs /dev/shm --perms 0700 --tmpfs /home/ann "
        "--ro-bind-try /dev/null /home/ann/key --ro-bind-try /data/b /home/ann/b "
        "--perms 0600 --file 9 /home/ann/c --bind-try /home/ann/d e /home/ann/d e "
        "--ro-bind-try /home/ann/d e/f /home/ann/d e/f --dev-bind-try /dev/kvm /dev/kvm "
        "--ro-bind-try /dev/shm/x /dev/shm/x "
        f"{SEALED} --unshare-net --new-session --info-fd 7 --chdir {WORK} --"
    )


def test_a_terminal_shares_its_session_and_limits_come_right_before_the_program():
    allowed = Allowed(has_terminal=True, memory_mb=2, max_processes=5)
    assert wrapped(allowed, info_fd=None) == (
        f"bwrap --dev-bind / / {SEALED} --chdir {WORK} -- prlimit --data=2097152 --nproc=5 --"
    )
    assert wrapped(replace(allowed, memory_mb=0)).endswith("-- prlimit --nproc=5 --")
    assert wrapped(replace(allowed, max_processes=0)).endswith("-- prlimit --data=2097152 --")


WAY = ByProxy(socket=Path("/d/proxy"), port=3128, own_ports=(8080, 5432))
FORWARD = f"{os.path.realpath(sys.executable)} -I -S {forwarder.__file__} /d/proxy 3128"


def test_a_program_with_listed_hosts_has_no_network_and_starts_behind_the_forwarder():
    allowed = Allowed(has_network=False, by_proxy=WAY, memory_mb=1)
    assert wrapped(allowed).endswith(
        f"--unshare-net --new-session --info-fd 7 --chdir {WORK} -- "
        f"{FORWARD} 8080 5432 -- prlimit --data=1048576 --"
    )


def test_the_profile_of_macos_with_listed_hosts():
    """All programs share one loopback: listed ports of it are allowed, and need no forwarder."""
    allowed = Allowed(has_network=False, by_proxy=WAY, sockets=paths("/door"))
    assert profile(allowed, ()).splitlines()[2:] == [
        "(deny network*)",
        '(allow network-outbound (remote unix-socket (path-literal "/door")))',
        '(allow network-outbound (remote unix-socket (path-literal "/d/proxy")))',
        '(allow network-bind network-inbound (local ip "localhost:3128"))',
        '(allow network-outbound (remote ip "localhost:3128"))',
        '(allow network-outbound (remote ip "localhost:8080"))',
        '(allow network-outbound (remote ip "localhost:5432"))',
        "(deny signal)",
        "(allow signal (target same-sandbox))",
    ]
    argv = seatbelt(("x", "y"), allowed, ())
    assert " ".join(argv[3:]) == f"{FORWARD} -- x y"


def test_the_socket_of_the_proxy_is_in_the_sandbox(tmp_path):
    way = ByProxy(socket=tmp_path / "proxy")
    allowed = Allowed(may_write_anywhere=False, empty=(tmp_path.parent,), by_proxy=way)
    assert [one.at for one in mounts_of(allowed) if one.access is Access.READ] == [tmp_path]


DEVICES = (
    '(literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") '
    '(literal "/dev/dtracehelper") (literal "/dev/stdout") (literal "/dev/stderr")'
)
LOOKUP = '"/private/var/run/mDNSResponder"'


def test_the_profile_of_macos():
    allowed = Allowed(may_write_anywhere=False, sockets=paths("/door"))
    mounts = (
        mount(Access.EMPTY, '/Users/a"n\\n'),
        mount(Access.READ, "/r", source="/real/r"),
        mount(Access.COPY, "/c", is_folder=False),
        mount(Access.WRITE, "/w"),
        mount(Access.HELD, "/w/h"),
    )
    assert profile(allowed, mounts).splitlines() == [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        f"(allow file-write* {DEVICES})",
        '(allow file-write* (regex #"^/dev/ttys[0-9]+$"))',
        '(deny file-read-data file-read-xattr file-write* (subpath "/Users/a\\"n\\\\n"))',
        '(allow file-read* (subpath "/real/r"))',
        '(deny file-write* (subpath "/real/r"))',
        '(allow file-read* (literal "/c"))',
        '(deny file-write* (literal "/c"))',
        '(allow file-read* file-write* (subpath "/w"))',
        '(allow file-read* (subpath "/w/h"))',
        '(deny file-write* (subpath "/w/h"))',
        "(deny network* (remote unix-socket))",
        f"(allow network-outbound (remote unix-socket (path-literal {LOOKUP})))",
        '(allow network-outbound (remote unix-socket (path-literal "/door")))',
        "(deny signal)",
        "(allow signal (target same-sandbox))",
    ]


def test_the_profile_of_macos_without_network_or_rules():
    without = profile(Allowed(has_network=False, sockets=paths("/door")), ())
    assert without.splitlines()[2:4] == [
        "(deny network*)",
        '(allow network-outbound (remote unix-socket (path-literal "/door")))',
    ]
    assert "network" not in profile(EVERYTHING, ())
    assert "file" not in profile(EVERYTHING, ())


def started(wrapper, allowed=EVERYTHING):
    return start_command(("x",), allowed, (), wrapper=wrapper, cwd=WORK, pipe_fd=5)


def test_each_machine_uses_what_it_has():
    confined = Allowed(may_write_anywhere=False)
    assert started(Wrapper(bwrap="/b", has_seatbelt=True))[0] == "/b"
    bare = started(Wrapper())
    assert bare[-2:] == ("5", "x")
    assert "sandbox-exec" not in " ".join(bare)
    on_macos = started(Wrapper(has_seatbelt=True), confined)
    assert on_macos[-5:-2] == ("5", "/usr/bin/sandbox-exec", "-p")
    assert started(Wrapper(has_seatbelt=True)) == bare
    assert started(Wrapper(), confined) == bare


@pytest.mark.parametrize(
    ("allowed", "wrapper", "words"),
    [
        (Allowed(has_network=False), Wrapper(), "network = false needs a sandbox"),
        (Allowed(has_network=False, by_proxy=WAY), Wrapper(), "a list of hosts as network needs"),
        (Allowed(has_network=False, by_proxy=WAY), Wrapper(bwrap="b"), ""),
        (Allowed(has_network=False), Wrapper(has_seatbelt=True), ""),
        (Allowed(has_network=False), Wrapper(bwrap="b"), ""),
        (Allowed(memory_mb=1), Wrapper(has_seatbelt=True), "need bubblewrap"),
        (Allowed(max_processes=1), Wrapper(), "need bubblewrap"),
        (Allowed(memory_mb=1), Wrapper(bwrap="b"), ""),
        (EVERYTHING, Wrapper(), ""),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused(allowed, wrapper, words):
    unmet = unmet_limit(wrapper, allowed)
    assert words in unmet
    assert bool(unmet) is bool(words)


@pytest.mark.parametrize(("user", "is_refused"), [(0, True), (1000, False)])
def test_a_number_of_processes_cannot_be_a_limit_for_root(monkeypatch, user, is_refused):
    monkeypatch.setattr("os.getuid", lambda: user)
    assert bool(unmet_limit(Wrapper(bwrap="b"), Allowed(max_processes=1))) is is_refused


def test_a_copy_is_handed_over_as_an_open_file(tmp_path):
    home = tmp_path / "a home"
    home.mkdir()
    file = home / ".x.json"
    file.write_text("{}")
    allowed = Allowed(may_write_anywhere=False, empty=(home,), copied=(file,))
    with copies_opened(allowed) as (mounts, fds):
        assert [one.access for one in mounts] == [Access.EMPTY, Access.COPY]
        assert Path(f"/proc/self/fd/{fds[0]}").readlink() == file
    line = terminal_command("x", allowed, wrapper=Wrapper(bwrap="b"), cwd=home)
    assert f"--file 3 '{file}'" in line
    assert line.endswith(f"terminal_job.py sh -c x 3<'{file}'")


@pytest.mark.parametrize(
    ("closed", "is_confined", "is_sealed"),
    [({"keys"}, True, True), ({"keys"}, False, False), ((), True, False)],
)
def test_a_terminal_is_sealed_if_that_closes_anything(closed, is_confined, is_sealed):
    wrapper = Wrapper(bwrap="b", closed=frozenset(closed))
    line = terminal_command(
        "x", Allowed(may_write_anywhere=not is_confined), wrapper=wrapper, cwd=WORK
    )
    start = f"{sys.executable} -I -S {seal.__file__} b " if is_sealed else "b "
    assert line.startswith(start)
