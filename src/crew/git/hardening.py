"""The settings of every git call, so that no file in a repository can make git run a program.

They are passed as `GIT_CONFIG_KEY_n`: unlike `-c name=value`, this form also reaches drivers whose
name contains an equals sign.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from crew.domain.kernel.frozen import frozen
from crew.system.foreign_files import NotBelieved, read_foreign

MERGE_AS_TEXT = "git merge-file -q -L ours -L base -L theirs --marker-size=%L %A %O %B"
"""Replaces every external merge driver. An empty command would silently keep our side."""

FIXED: dict[str, str] = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.sshCommand": "ssh",
    "core.gitProxy": "",
    "core.askPass": "",
    "core.alternateRefsCommand": "",
    "core.editor": "true",
    "core.pager": "cat",
    "core.safecrlf": "false",
    "core.splitIndex": "false",
    "core.packedRefsTimeout": "20000",
    "core.filesRefLockTimeout": "2000",
    # A checkpoint must survive a power failure.
    "core.fsync": "committed,reference",
    "core.fsyncMethod": "fsync",
    "credential.helper": "",
    "diff.external": "",
    "diff.ignoreSubmodules": "none",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "log.showSignature": "false",
    "gpg.program": "false",
    "color.ui": "false",
    "submodule.recurse": "false",
    "advice.detachedHead": "false",
    "checkout.defaultRemote": "",
    "worktree.guessRemote": "false",
    "merge.conflictStyle": "merge",
    "merge.renames": "true",
    "merge.directoryRenames": "conflict",
    "merge.renormalize": "false",
}

_DRIVER_KEYS: dict[str, dict[str, str]] = {
    "filter": {"clean": "", "smudge": "", "process": "", "required": "false"},
    "diff": {"textconv": "cat", "command": ""},
    "merge": {"driver": MERGE_AS_TEXT},
}

_LFS_COMMANDS = {
    "filter.lfs.clean": {"git-lfs clean -- %f"},
    "filter.lfs.smudge": {"git-lfs smudge -- %f", "git-lfs smudge --skip -- %f"},
    "filter.lfs.process": {"git-lfs filter-process", "git-lfs filter-process --skip"},
}
_LFS_SKIPS = " --skip"
_LFS_CHOSEN = ("lfs.fetchinclude", "lfs.fetchexclude")

_HANDED_ON = re.compile(
    r"core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|excludesfile"
    r"|attributesfile|whitespace|quotepath|hookspath|sparsecheckout(cone)?)"
    r"|commit\.cleanup|extensions\.objectformat|i18n\..*|init\.defaultbranch"
    r"|merge\.(conflictstyle|renames|directoryrenames)|(filter|diff|merge|alias)\..*\..*|alias\.[^.]*",
)
"""What a person sets for this repository and their agents need too: no remotes, no credentials."""

_PLACES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
"""The variables that say where a person keeps settings. Crew's own still win over those."""

_LONGEST_POINTER = 8192
_PROMISES = re.compile(r"remote\.(.*)\.promisor")
_FALSE = {"false", "no", "off", "0"}


LfsWanted = Literal["all", "some", "none"]
"""Which contents of git-lfs a person has files filled with; of `some`, not all need to be here."""


class Setting(NamedTuple):
    """One value of the configuration, the file that sets it, and that file's scope."""

    scope: str
    origin: Path
    key: str
    value: str


@frozen
class Configured:
    """The relevant configuration: drivers to disable, the default branch, the files read."""

    silenced: Mapping[str, str]
    filters: frozenset[str]
    lfs: bool  # git-lfs is configured as it sets itself up, and installed
    lfs_wanted: LfsWanted
    default_branch: str  # `crew.defaultBranch`, or nothing
    is_conditional: bool  # differs between worktrees of one repository
    files: tuple[Path, ...]
    handed_on: Mapping[str, str]  # the person's settings that hold in a task's own repository too
    promising: tuple[str, ...]  # the remotes that promise objects that are not here
    settings: tuple[Setting, ...] = ()  # everything that files set, in git's order


def guarded(args: tuple[str, ...]) -> tuple[str, ...]:
    """Options against diff drivers, whose command has no harmless value."""
    if args and args[0] in {"diff", "log", "show"}:
        return (args[0], "--no-ext-diff", "--no-textconv", *args[1:])
    return args


def parse_listing(listing: bytes, *, cwd: Path, git_dir: Path | None) -> Configured:
    """Parse `git config --list --show-scope --show-origin -z`: scope, origin, key with value."""
    parts = os.fsdecode(listing).split("\0")
    values: dict[str, str] = {}
    handed_on: dict[str, str] = {}
    settings: list[Setting] = []
    own = [] if git_dir is None else [file.resolve() for file in _config_files(git_dir)]
    files: dict[Path, None] = dict.fromkeys(standard_files(git_dir))
    for scope, origin, entry in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        key, has_value, value = entry.partition("\n")
        value = value if has_value else "true"
        values[key] = value
        is_own = origin.startswith("file:") and (cwd / origin[5:]).resolve() in own
        if key.startswith("user.") or (is_own and _HANDED_ON.fullmatch(key)):
            handed_on[key] = value
        if origin.startswith("file:"):
            settings.append(Setting(scope, cwd / origin[5:], key, value))
            files.update(dict.fromkeys(_files_named(cwd / origin[5:], key, value)))
            if key.startswith("includeif.") and git_dir is not None:
                files[git_dir / "HEAD"] = None
    return Configured(
        silenced=dict(_silencing(values)),
        filters=frozenset(name for section, name in _drivers(values) if section == "filter"),
        lfs=_is_plain_lfs(values),
        lfs_wanted=_lfs_wanted(values),
        default_branch=values.get("crew.defaultbranch", "").strip(),
        is_conditional=any(key.startswith("includeif.") for key in values),
        files=tuple(files),
        handed_on=handed_on,
        promising=tuple(_promising(values)),
        settings=tuple(settings),
    )


def standard_files(git_dir: Path | None) -> tuple[Path, ...]:
    """The files that git reads if they exist."""
    own = () if git_dir is None else _config_files(git_dir)
    system = Path(os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig")
    return (system, *persons_files(os.environ), *own)


def persons_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files with a person's settings for all repositories, if they exist."""
    if (named := environ.get("GIT_CONFIG_GLOBAL")) is not None:
        return (Path(named),) if named else ()
    home = Path(environ.get("HOME") or "/")
    config_home = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return (config_home / "git" / "config", home / ".gitconfig")


def _config_files(git_dir: Path) -> tuple[Path, Path]:
    return common_dir_of(git_dir) / "config", git_dir / "config.worktree"


def shares_config_with(git_dir: Path | None) -> Path | None:
    """The git dir whose configuration applies here. A linked worktree seldom has its own."""
    if git_dir is None or (git_dir / "config.worktree").exists():
        return git_dir
    return Path(os.path.normpath(common_dir_of(git_dir)))


def stamp_of(files: Iterable[Path | str]) -> tuple[tuple[int, ...], ...]:
    """Changes when any of the files does. It includes ctime, which cannot be set back."""
    return tuple(map(_stamp, files))


def environment(settings: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """The caller's environment without git's variables, which would override the directory."""
    kept = os.environ.items()
    clean = {name: it for name, it in kept if not name.startswith("GIT_") or name in _PLACES}
    clean.pop("SSH_ASKPASS", None)
    clean.pop("LANGUAGE", None)
    clean |= {
        "LC_ALL": "C",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings.items()):
        clean[f"GIT_CONFIG_KEY_{number}"] = key
        clean[f"GIT_CONFIG_VALUE_{number}"] = value
    return clean | dict(extra)


def git_dir_of(where: Path) -> Path | None:
    """The git directory that git would find from here, without starting a process."""
    for folder in (where, *where.parents):
        dot_git = folder / ".git"
        if dot_git.is_dir():
            return dot_git
        if dot_git.is_file():
            return linked_git_dir(dot_git)
        if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
            return folder
        if (folder / "HEAD").is_file() and (folder / "commondir").is_file():
            return folder
    return None


def linked_git_dir(dot_git: Path) -> Path | None:
    """The path that a `.git` file names."""
    text = _pointer(dot_git) or ""
    if not text.startswith("gitdir: "):
        return None
    return dot_git.parent / text.removeprefix("gitdir: ").rstrip("\r\n")


def common_dir_of(git_dir: Path) -> Path:
    text = _pointer(f"{git_dir}/commondir")
    return git_dir if text is None else git_dir / text.rstrip("\r\n")


def _pointer(file: Path | str) -> str | None:
    """The text of a small file that names a folder. An agent may have put a pipe there."""
    try:
        text = os.fsdecode(read_foreign(file, max_bytes=_LONGEST_POINTER))
    except (OSError, NotBelieved):
        return None
    return None if "\0" in text else text


def _files_named(origin: Path, key: str, value: str) -> Iterator[Path]:
    """The file that sets a value, and the file it includes, even if that does not exist yet."""
    yield origin
    if key == "include.path" or (key.startswith("includeif.") and key.endswith(".path")):
        yield origin.parent / Path(value).expanduser()


def _drivers(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for key in values:
        section, _, rest = key.partition(".")
        name, dot, _ = rest.rpartition(".")
        if dot and section in _DRIVER_KEYS:
            yield section, name


def _silencing(values: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for section, name in dict.fromkeys(_drivers(values)):
        for key, value in _DRIVER_KEYS[section].items():
            yield f"{section}.{name}.{key}", value
    for key in values:
        if key.startswith("lfs.extension."):
            yield key, ""


def _is_plain_lfs(values: Mapping[str, str]) -> bool:
    named = {key: value for key, value in values.items() if key in _LFS_COMMANDS}
    known = all(value in _LFS_COMMANDS[key] for key, value in named.items())
    return bool(named) and known and shutil.which("git-lfs") is not None


def _promising(values: Mapping[str, str]) -> Iterator[str]:
    named = ((_PROMISES.fullmatch(key), value) for key, value in values.items())
    found = [match[1] for match, value in named if match and value.lower() not in _FALSE]
    older = values.get("extensions.partialclone")
    yield from dict.fromkeys([*([older] if older else []), *found])


def _lfs_wanted(values: Mapping[str, str]) -> LfsWanted:
    if any(_LFS_SKIPS in values.get(key, "") for key in _LFS_COMMANDS):
        return "none"
    return "some" if any(values.get(key) for key in _LFS_CHOSEN) else "all"


def _stamp(file: Path | str) -> tuple[int, ...]:
    try:
        found = os.stat(file)  # noqa: PTH116 - a dozen times for each step
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
