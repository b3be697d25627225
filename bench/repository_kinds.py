"""The kinds of repositories that people have, each made with real git in a folder of its own."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE_S = 60
CREW = Path(sys.executable).with_name("crew")
STRANGER = 12345
"""The uid of another owner."""

SETTINGS = """\
[user]
\tname = Ann
\temail = ann@example.org
[init]
\tdefaultBranch = main
[protocol "file"]
\tallow = always
"""


_NARRATION = re.compile(r"\d{4}-|sandbox: |warning: ")


class Broken(Exception):
    """A step did not do what it must; the message is the sentence that a person reads."""


class NotHere(Exception):
    """This machine cannot make such a repository."""


@dataclass(kw_only=True)
class Place:
    """A folder with a home of its own, and the person who types in it."""

    top: Path
    git_format: str = "sha1"
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        theirs = ("GIT_", "CREW_", "XDG_", "PYTHON")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
        home = self.top / "home"
        home.mkdir(parents=True)
        (home / ".gitconfig").write_text(SETTINGS)
        path = f"{CREW.parent}:{kept.get('PATH', '')}"
        self.env = {**kept, "HOME": str(home), "PATH": path}

    @property
    def script(self) -> Path:
        return self.top / "script.json"

    def typed(self, command: str, at: Path) -> "subprocess.CompletedProcess[str]":
        """What a person types in a shell. What takes too long is ended, with all it started."""
        with subprocess.Popen(
            ["sh", "-c", command],
            cwd=at,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as running:
            try:
                out, err = running.communicate(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)  # the sandbox ends with crew
                out, err = running.communicate()
                told = [line for line in err.splitlines() if line][-1:]
                raise Broken(f"`{command}` does not end: {' '.join(told)}") from None
        return subprocess.CompletedProcess(command, running.returncode, out, err)

    def git(self, at: Path, *args: str) -> str:
        done = self.typed(shlex.join(("git", *args)), at)
        if done.returncode:
            raise Broken(f"git {args[0]}: {done.stderr.strip().splitlines()[-1:]}")
        return done.stdout.rstrip("\n")

    def crew(self, at: Path, *args: str) -> "subprocess.CompletedProcess[str]":
        return self.typed(shlex.join(("crew", *args)), at)

    def settings(self, text: str) -> None:
        """Add settings to the person's own configuration of git."""
        with (self.top / "home" / ".gitconfig").open("a") as file:
            file.write(text)

    def repository(self, name: str = "repo", *options: str) -> Path:
        """A new repository with files, and a commit for each of two."""
        path = self.top / name
        path.mkdir(parents=True)
        self.git(path, "init", "-q", f"--object-format={self.git_format}", *options)
        self.write(path, "first", {"work/old.txt": "old\n", "docs/page.txt": "page\n"})
        self.write(path, "second", {"readme.txt": "hello\n"})
        return path

    def write(self, path: Path, subject: str, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
        self.git(path, "add", "--", *files)
        self.git(path, "commit", "-q", "-m", subject)

    def upstream(self, name: str = "upstream.git") -> str:
        """The address of a bare repository with the same files."""
        self.repository("origin")
        self.git(self.top, "clone", "-q", "--bare", "origin", name)
        self.git(self.top / name, "config", "uploadpack.allowFilter", "true")
        return f"file://{self.top / name}"


def _plain(place: Place) -> Path:
    return place.repository()


def _submodules(place: Place) -> Path:
    path = place.repository()
    add_submodule(place, path, "vendor/early")
    return path


def add_submodule(place: Place, checkout: Path, name: str) -> None:
    """A submodule, which has one of its own, as a person adds it."""
    source = place.top / f"{Path(name).name}-source"
    inner = place.top / f"{Path(name).name}-inner"
    for one in (inner, source):
        one.mkdir()
        place.git(one, "init", "-q", f"--object-format={place.git_format}")
        place.write(one, "content", {"content.txt": f"content of {one.name}\n"})
    place.git(source, "submodule", "--quiet", "add", str(inner), "inner")
    place.git(source, "commit", "-q", "-m", "with an inner one")
    place.git(checkout, "submodule", "--quiet", "add", str(source), name)
    place.git(checkout, "submodule", "--quiet", "update", "--init", "--recursive", "--", name)
    place.git(checkout, "commit", "-q", "-m", f"add {name}")


def _lfs(place: Place) -> Path:
    if shutil.which("git-lfs", path=place.env["PATH"]) is None:
        raise NotHere("git-lfs is not installed")
    path = place.repository()
    place.git(path, "lfs", "install", "--local")
    place.git(path, "lfs", "track", "*.bin")
    place.write(
        path,
        "with large files",
        {
            ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
            "work/large.bin": "large\n",
        },
    )
    return path


def _sparse(place: Place) -> Path:
    path = place.repository()
    place.git(path, "sparse-checkout", "set", "work")
    return path


def _sparse_patterns(place: Place) -> Path:
    path = place.repository()
    place.git(path, "sparse-checkout", "set", "--no-cone", "/*", "!/docs/")
    return path


def _partial(place: Place) -> Path:
    place.git(place.top, "clone", "-q", "--filter=blob:none", place.upstream(), "repo")
    return place.top / "repo"


def _shallow(place: Place) -> Path:
    place.git(place.top, "clone", "-q", "--depth=1", place.upstream(), "repo")
    return place.top / "repo"


def _linked(place: Place) -> Path:
    path = place.repository()
    place.git(path, "switch", "-q", "-c", "another")
    place.git(path, "worktree", "add", "-q", "../checkout", "main")
    return place.top / "checkout"


def _bare(place: Place) -> Path:
    place.upstream("repo.git")
    place.git(place.top / "repo.git", "worktree", "add", "-q", "../checkout", "main")
    return place.top / "checkout"


def _hidden_bare(place: Place) -> Path:
    """A bare repository in `.bare`, which a `.git` file beside its worktrees names."""
    place.upstream("project/.bare")
    (place.top / "project" / ".git").write_text("gitdir: ./.bare\n")
    place.git(place.top / "project", "worktree", "add", "-q", "main", "main")
    return place.top / "project" / "main"


def _sha256(place: Place) -> Path:
    place.git_format = "sha256"
    return place.repository()


def _signed(place: Place) -> Path:
    path = place.repository()
    key = place.top / "home" / ".ssh" / "id"
    key.parent.mkdir(mode=0o700)
    made = place.typed(f"ssh-keygen -q -t ed25519 -N '' -f {shlex.quote(str(key))}", place.top)
    if made.returncode:
        raise NotHere("ssh-keygen is not installed")
    place.settings(
        f"[commit]\n\tgpgSign = true\n[tag]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n"
        f"[user]\n\tsigningKey = {key}.pub\n"
    )
    place.write(path, "signed", {"signed.txt": "signed\n"})
    return path


def _other_owner(place: Place) -> Path:
    if os.getuid():
        raise NotHere("only root can give a repository away")
    path = place.repository()
    place.typed(f"chown -R {STRANGER}:{STRANGER} .", path)
    return path


def _crlf(place: Place) -> Path:
    """A clone with the line ends of Windows, also in the task files that came with it."""
    source = place.repository("origin")
    place.crew(source, "init")
    place.crew(source, "new", "--title", "cloned")
    place.git(source, "add", "-A")
    place.git(source, "commit", "-q", "-m", "with a task")
    place.settings("[core]\n\tautocrlf = true\n")
    place.git(place.top, "clone", "-q", "origin", "repo")
    return place.top / "repo"


def _no_identity(place: Place) -> Path:
    path = place.repository()
    settings = place.top / "home" / ".gitconfig"
    settings.write_text("[user]\n\tuseConfigOnly = true\n[init]" + SETTINGS.split("[init]")[1])
    return path


def _unborn(place: Place) -> Path:
    path = place.top / "repo"
    path.mkdir()
    place.git(path, "init", "-q")
    return path


def _detached(place: Place) -> Path:
    path = place.repository()
    place.git(path, "switch", "-q", "--detach", "HEAD~1")
    return path


def _odd_path(place: Place) -> Path:
    return place.repository("my räume/a 'repo' $(x) ö")


def _nested(place: Place) -> Path:
    """Inside of another repository, and with a clone in an untracked folder."""
    place.repository("outer")
    path = place.repository("outer/inner")
    place.repository("outer/inner/tools")
    with (path / ".git" / "info" / "exclude").open("a") as file:
        file.write("/tools/\n")
    return path


def _is_submodule(place: Place) -> Path:
    """The repository is itself a submodule of another one."""
    place.repository("outer")
    place.git(place.top / "outer", "submodule", "--quiet", "add", place.upstream(), "repo")
    place.git(place.top / "outer", "commit", "-q", "-m", "add repo")
    return place.top / "outer" / "repo"


def _separate(place: Place) -> Path:
    return place.repository("repo", f"--separate-git-dir={place.top / 'elsewhere.git'}")


def _borrowed(place: Place) -> Path:
    """Its objects are in another repository."""
    place.upstream()
    place.git(place.top, "clone", "-q", "--shared", "upstream.git", "repo")
    return place.top / "repo"


def _through_link(place: Place) -> Path:
    place.repository("real")
    (place.top / "repo").symlink_to("real")
    return place.top / "repo"


def _many_files(place: Place) -> Path:
    """The settings that git recommends for many files, a split index, and all refs in one file."""
    path = place.repository()
    place.git(path, "config", "feature.manyFiles", "true")
    place.git(path, "update-index", "--index-version", "4", "--split-index")
    place.git(path, "gc", "-q")
    return path


def _own_settings(place: Place) -> Path:
    """Settings of a worktree's own, and hooks of the person."""
    path = place.repository()
    place.git(path, "config", "extensions.worktreeConfig", "true")
    place.git(path, "config", "--worktree", "core.whitespace", "trailing-space")
    hook = path / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)
    return path


def _master(place: Place) -> Path:
    path = place.repository()
    place.git(path, "branch", "-m", "main", "master")
    return path


def _half_done(place: Place) -> Path:
    """A crew with a task that has one commit, and whose runner was killed in its second step."""
    path = place.repository()
    if (done := place.crew(path, "init")).returncode:
        raise Broken(sentence(done))
    set_up(place, path)
    place.crew(path, "new", "--title", "half")
    played = path / ".crew" / "sessions" / "script-1.json"
    with (place.top / "half.txt").open("w") as out:
        running = subprocess.Popen(
            [CREW, "run", "-n", "1"], cwd=path, env=dict(place.env), stdout=out, stderr=out
        )
        try:
            _await(lambda: played.exists() and '"steps": 2' in played.read_text())
        finally:
            running.kill()
            running.wait()
    return path


def _await(is_so: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > give_up_at:
            raise Broken("the first half of the task was not done")
        time.sleep(0.05)


def set_up(place: Place, checkout: Path) -> None:
    """The scripted agent, and a gate that needs the content of submodules, where there are any."""
    configure(place, checkout, "agents.scripted.script", str(place.script))
    configure(place, checkout, "agents.worker_default", "scripted")
    configure(place, checkout, "review.max_rounds", "2")
    configure(place, checkout, "run.backoff_s", "0.1")
    configure(place, checkout, "run.max_backoff_s", "0.2")
    gate = 'for one in $(git config -f .gitmodules --get-regexp "[.]path$" | cut -d" " -f2); do '
    gate += 'test -s "$one/content.txt" && test -s "$one/inner/content.txt" || exit 1; done'
    configure(place, checkout, "complete.command", gate)


def configure(place: Place, checkout: Path, key: str, value: str) -> None:
    done = place.crew(checkout, "config", "set", key, value)
    if done.returncode:
        raise Broken(sentence(done))


def sentence(done: "subprocess.CompletedProcess[str]") -> str:
    """What crew said last, without its narration."""
    lines = [line for line in done.stderr.splitlines() if line and not _NARRATION.match(line)]
    told = [line.removeprefix("crew: ") for line in lines if line.startswith("crew: ")]
    return " / ".join(told or lines[-3:]) or f"exit code {done.returncode}"


def _renamed(place: Place) -> Path:
    _half_done(place)
    (place.top / "repo").rename(place.top / "moved")
    return place.top / "moved"


def _moved(place: Place) -> Path:
    """To another folder, without the worktrees."""
    _half_done(place)
    (place.top / "away").mkdir()
    (place.top / "repo").rename(place.top / "away" / "moved")
    return place.top / "away" / "moved"


def _copied(place: Place) -> Path:
    _half_done(place)
    place.typed("cp -a repo copy", place.top)
    return place.top / "copy"


KINDS: dict[str, Callable[[Place], Path]] = {
    "plain": _plain,
    "submodules": _submodules,
    "git-lfs": _lfs,
    "sparse checkout": _sparse,
    "sparse, by patterns": _sparse_patterns,
    "partial clone": _partial,
    "shallow clone": _shallow,
    "linked worktree": _linked,
    "bare, with worktrees": _bare,
    "bare in .bare": _hidden_bare,
    "SHA-256": _sha256,
    "signed commits": _signed,
    "another owner": _other_owner,
    "moved": _renamed,
    "moved elsewhere": _moved,
    "copied": _copied,
    "detached HEAD": _detached,
    "line ends of Windows": _crlf,
    "no identity": _no_identity,
    "no commit": _unborn,
    "odd path": _odd_path,
    "nested": _nested,
    "itself a submodule": _is_submodule,
    "separate git dir": _separate,
    "borrowed objects": _borrowed,
    "through a link": _through_link,
    "settings for many files": _many_files,
    "worktree settings": _own_settings,
    "branch master": _master,
}

MAY_BE_REFUSED = {"shallow clone", "another owner", "no commit", "no identity"}
"""At `init`, with a command that helps when it is typed."""
