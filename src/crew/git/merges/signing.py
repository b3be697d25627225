"""Signs crew's own merges with the person's key, outside every sandbox and without a question.

A signed commit has another id than the one that was tested, and the same tree, parents and message.
Its committer is the person, whose key signs it. Merges that were made on top of it are made again
on the signed one, with their trees as they are.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from crew.domain.kernel.errors import CrewError, TimedOut
from crew.domain.kernel.frozen import frozen
from crew.git import hardening, spawn_git
from crew.git.git_command import ask, git, persons_settings
from crew.git.merges.merges import identity
from crew.git.repository import Repository
from crew.git.shown_settings import from_people
from crew.system.crash_points import effect

SIGNING_LIMIT_S = 20.0
"""How long a key may take: a program may wait there for a person who is not at the machine."""

_OF_SIGNING = re.compile(r"gpg\..*|user\.(signingkey|name|email)|committer\.(name|email)")
_PROGRAMS = {"openpgp": "gpg", "x509": "gpgsm"}
_UNASKED = ("--batch", "--no-tty", "--pinentry-mode", "error")
_QUIET = {"SSH_ASKPASS_REQUIRE": "never", "GPG_TTY": ""}
_COMMITTER = re.compile(rb"\ncommitter .*> (\d+) [-+]\d+\n")
_NOISE = ("[GNUPG:]", "error: gpg failed", "fatal: failed to write commit", "error: \n")


class CannotSign(CrewError):
    """The person's key does not sign now."""

    code = "cannot_sign"


@frozen
class Signer:
    """The settings with which git signs, and the person who is the committer."""

    settings: Mapping[str, str]
    name: str
    email: str

    @property
    def kind(self) -> str:
        return self.settings.get("gpg.format", "openpgp")

    @property
    def options(self) -> tuple[str, ...]:
        return tuple(
            word for key, value in self.settings.items() for word in ("-c", f"{key}={value}")
        )

    @property
    def program(self) -> str:
        named = self.settings.get(f"gpg.{self.kind}.program")
        if self.kind == "openpgp":
            named = named or self.settings.get("gpg.program")
        return named or _PROGRAMS.get(self.kind, "ssh-keygen")


def wants_signatures(repo: Repository) -> bool:
    """Whether the person's settings sign every commit or tag."""
    found = {one.key: one.value for one in persons_settings(repo.common_dir)}
    asked = (found.get(key, "") for key in ("commit.gpgsign", "tag.gpgsign"))
    return any(value.lower() in {"true", "yes", "on", "1"} for value in asked)


def find_signer(repo: Repository) -> Signer:
    """The person's key, from settings that no commit brings."""
    persons = from_people(repo, persons_settings(repo.common_dir))
    found = {one.key: one.value for one in persons if _OF_SIGNING.fullmatch(one.key)}
    name = found.get("committer.name") or found.get("user.name") or ""
    email = found.get("committer.email") or found.get("user.email") or ""
    own = {key: value for key, value in found.items() if key.startswith("gpg.")}
    settings = {"gpg.program": _PROGRAMS["openpgp"], **own}
    key = found.get("user.signingkey", "")
    is_ssh = found.get("gpg.format") == "ssh"
    if not key and not is_ssh:
        key = f"{name} <{email}>" if email else ""
    if key:
        settings["user.signingkey"] = key
    if not key and "gpg.ssh.defaultkeycommand" not in settings:
        raise CannotSign(
            "[merge] sign is on, and git knows no key to sign with",
            hint="name yours: git config --global user.signingkey KEY; "
            "or turn it off: crew config set merge.sign false",
        )
    return Signer(settings=settings, name=name or "crew", email=email or "crew@localhost")


def sign_merges(repo: Repository, merges: Sequence[str], *, count: int) -> dict[str, str]:
    """Sign the first `count` merges, each made on the one before it; the others are made again.

    Returns the commits that take the place of others. What is signed already stays as it is. Raises
    `CannotSign` if the key does not sign now, for example because it is locked.
    """
    signer: Signer | None = None
    placed: dict[str, str] = {}
    for number, commit in enumerate(merges):
        content = ask(repo.common_dir, "cat-file", "commit", commit).out
        moved = _with_parents(content, placed)
        if number < count and not _is_signed(moved):
            signer = signer or _usable_signer(repo)
            placed[commit] = _signed(repo, signer, moved)
        elif moved != content:
            placed[commit] = _stored(repo, moved)
    return placed


def check_signer(repo: Repository) -> str:
    """The key that signs, in words; raises `CannotSign` if it does not sign now."""
    signer = _usable_signer(repo)
    tree = git(repo.common_dir, "hash-object", "-t", "tree", "--stdin", "-w")
    _commit_signed(repo, signer, ("commit-tree", tree), b"crew tries the key\n", identity(0))
    return f"{signer.kind} {signer.settings.get('user.signingkey', 'key')}"


def _usable_signer(repo: Repository) -> Signer:
    signer = find_signer(repo)
    _check_key(signer)
    return signer


def _is_signed(content: bytes) -> bool:
    return b"\ngpgsig" in content.partition(b"\n\n")[0]


def _with_parents(content: bytes, placed: Mapping[str, str]) -> bytes:
    head, gap, message = content.partition(b"\n\n")
    for old, new in placed.items():
        head = head.replace(f"\nparent {old}\n".encode(), f"\nparent {new}\n".encode())
    return head + gap + message


@effect("git.sign_merge")
def _signed(repo: Repository, signer: Signer, content: bytes) -> str:
    head, _, message = content.partition(b"\n\n")
    lines = head.decode("ascii", "replace").splitlines()
    tree = lines[0].removeprefix("tree ")
    parents = (line.removeprefix("parent ") for line in lines if line.startswith("parent "))
    made = _COMMITTER.search(head + b"\n")
    sides = (word for parent in parents for word in ("-p", parent))
    env = identity(float(made[1]) if made else 0)
    return _commit_signed(repo, signer, ("commit-tree", *sides, tree), message, env)


def _commit_signed(
    repo: Repository, signer: Signer, args: tuple[str, ...], message: bytes, env: Mapping[str, str]
) -> str:
    who = {"GIT_COMMITTER_NAME": signer.name, "GIT_COMMITTER_EMAIL": signer.email}
    args = (*signer.options, args[0], "-S", *args[1:])
    try:
        answer = ask(
            repo.common_dir,
            *args,
            stdin=message,
            env={**env, **who, **_QUIET},
            timeout_s=SIGNING_LIMIT_S,
        )
    except TimedOut as late:
        raise _cannot(signer, f"{signer.program} took longer than {SIGNING_LIMIT_S:g} s") from late
    if answer.code != 0:
        raise _cannot(signer, answer.err)
    return answer.out.decode().strip()


def _stored(repo: Repository, content: bytes) -> str:
    args = ("hash-object", "-t", "commit", "-w", "--stdin")
    return git(repo.common_dir, *args, stdin=content)


def _check_key(signer: Signer) -> None:
    """Try a key of GnuPG first: git would let it open a window for a passphrase."""
    if signer.kind not in _PROGRAMS or not Path(signer.program).name.startswith("gpg"):
        return
    key = signer.settings["user.signingkey"]
    env = hardening.environment({}, _QUIET)
    try:
        done = spawn_git.run(
            (signer.program, *_UNASKED, "--status-fd=2", "-bsau", key),
            env=env,
            stdin=b"crew tries the key\n",
            timeout_s=SIGNING_LIMIT_S,
            keep_open=None,
        )
    except TimeoutError as late:
        raise _cannot(signer, f"{signer.program} took longer than {SIGNING_LIMIT_S:g} s") from late
    except OSError as problem:
        raise _cannot(signer, f"{signer.program} does not start: {problem.strerror}") from problem
    if done.code != 0:
        raise _cannot(signer, done.err.decode(errors="replace"))


def _cannot(signer: Signer, words: str) -> CannotSign:
    unlock = "ssh-add" if signer.kind == "ssh" else f"echo | {signer.program} -s >/dev/null"
    return CannotSign(
        f"the key that [merge] sign uses does not sign: {_last_words(words)}",
        hint=f"unlock it, for example with `{unlock}`, and crew tries again by itself; "
        "or turn it off: crew config set merge.sign false",
    )


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(_NOISE) and line != "error:"]
    return (told or lines or ["it says nothing"])[-1][:300]
