"""Writes the repository of a task's own: private refs, settings and hooks.

It is next to crew's git dir of the task's folder, whose `.git` file names it. So it outlives a
deleted folder. Its objects are its own too; those of the main repository are read through
`alternates`. It has no remotes. An agent may do there whatever it likes: crew takes from it
commits alone.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from crew.git.git_command import EXCLUDES, handed_on_settings
from crew.git.repository import Repository
from crew.git.task_repository.agent_index import LARGEST_INDEX, has_sound_index
from crew.git.task_repository.agent_refs import (
    LARGEST_LIST,
    PACKED,
    SHOWN,
    agent_git_of,
    branch_tip,
    is_folder,
    loose_refs,
    other_tips,
    read_bytes,
    read_text,
    remove,
)
from crew.git.task_repository.index_owner import owned_as_seen
from crew.system.atomic_files import write_file
from crew.system.crash_points import effect
from crew.system.foreign_folders import write_below

_UNFINISHED = "repository.crew-new"
_WITHOUT_PERSON = {
    **dict.fromkeys(("commit.gpgsign", "tag.gpgsign", "tag.forcesignannotated"), "false"),
    **dict.fromkeys(("merge.verifysignatures", "log.showsignature", "core.fsmonitor"), "false"),
    **dict.fromkeys(("core.editor", "sequence.editor"), "true"),  # the program that changes nothing
}
"""What holds here whatever a person sets: no key and no editor of theirs is there."""
FOLDERS = ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info")
_LARGEST_LOG = 20_000_000
_LARGEST_OF_PERSON = 1_000_000_000


@effect("git.lay_repository")
def lay_repository(repo: Repository, crew_git: Path, *, commit: str, branch: str | None) -> None:
    """Write the task's own repository, complete or not at all. Objects of a damaged one are kept.

    `crew_git` is crew's own git dir of the folder, whose index is copied.
    """
    making, agent_git = crew_git / _UNFINISHED, agent_git_of(crew_git)
    making.mkdir(parents=True, exist_ok=True)
    _clear(making, keep="objects")
    if is_folder(agent_git) and is_folder(agent_git / "objects"):
        _clear(making)
        (agent_git / "objects").rename(making / "objects")
        _clear(making / "objects" / "info")
    for folder in FOLDERS:
        os.makedirs(f"{making}/{folder}", exist_ok=True)  # noqa: PTH103 - for each task and gate
    kept = _kept(crew_git)
    commit = (branch and branch_tip(agent_git, branch)) or commit
    for name, content in (kept | files_of(repo, crew_git, commit, branch, kept)).items():
        _write(f"{making}/{name}", content)
    if "index" not in kept:
        copy_index(repo, crew_git, making)
    remove(agent_git)
    making.rename(agent_git)


def _write(file: str, content: bytes) -> None:
    folder = file.rpartition("/")[0]
    if not is_folder(folder):  # such as that of a branch with a slash in its name
        Path(folder).mkdir(parents=True)
    with open(file, "wb") as open_file:  # noqa: PTH123 - eight files for each task and gate
        open_file.write(content)


def _kept(crew_git: Path) -> dict[str, bytes]:
    """What stays of a damaged repository besides its objects: refs, their logs and the index."""
    agent_git = agent_git_of(crew_git)
    if not is_folder(agent_git):
        return {}
    logs = ("logs/HEAD", "logs/refs/stash", "ORIG_HEAD")
    found = {name: read_bytes(agent_git / name, most=_LARGEST_LOG) for name in logs}
    found["index"] = read_bytes(agent_git / "index", most=LARGEST_INDEX)
    if not has_sound_index(agent_git):
        found["index"] = None
    tips = "".join(f"{at} {ref}\n" for ref, at in other_tips(crew_git).items())
    found[PACKED] = tips.encode("utf-8", "surrogateescape")
    return {name: content for name, content in found.items() if content is not None}


def copy_index(repo: Repository, crew_git: Path, agent_git: Path | None = None) -> None:
    """Give the agent crew's own index, whose numbers are valid for the same files."""
    agent_git = agent_git or agent_git_of(crew_git)
    content = index_for_agent(repo, crew_git)
    if content is None:
        return
    if is_folder(agent_git / "index"):
        remove(agent_git / "index")
    write_file(agent_git / "index", content)


def index_for_agent(repo: Repository, crew_git: Path) -> bytes | None:
    """Crew's own index, with the owner that an agent sees; None if there is none."""
    content = read_bytes(crew_git / "index", most=LARGEST_INDEX)
    return owned_as_seen(content) if content is not None and repo.is_confined else content


def alternates(repo: Repository) -> bytes:
    """The content of `objects/info/alternates`: the main repository's objects."""
    return os.fsencode((repo.common_dir / "objects").resolve()) + b"\n"


def write_excludes(repo: Repository, crew_git: Path) -> None:
    """Ignore the patterns of this folder in the agent's own git calls too."""
    excludes = _excludes(repo, crew_git)
    write_below(agent_git_of(crew_git), "info/exclude", excludes, clears_way=True)


def files_of(
    repo: Repository,
    crew_git: Path,
    commit: str,
    branch: str | None,
    kept: Mapping[str, bytes],
) -> dict[str, bytes]:
    """The files of such a repository by their names, without its index and objects."""
    files = {
        "HEAD": f"ref: refs/heads/{branch}\n" if branch else f"{commit}\n",
        "config": _config(repo),
    }
    if branch:
        files[f"refs/heads/{branch}"] = f"{commit}\n"
    found = {name: text.encode("utf-8", "surrogateescape") for name, text in files.items()}
    found["objects/info/alternates"] = alternates(repo)
    shown = _shown_refs(repo)
    (crew_git / SHOWN).write_bytes(shown)
    found[PACKED] = _merged_refs(shown, kept.get(PACKED, b""))
    found["info/exclude"] = _excludes(repo, crew_git)
    sparse = repo.common_dir / "info" / "sparse-checkout"
    if sparse.is_file():
        found["info/sparse-checkout"] = sparse.read_bytes()
    return found


def _config(repo: Repository) -> str:
    """The settings that a person made for this repository, with their hooks, but no remotes."""
    shared = dict(handed_on_settings(repo.common_dir))
    version = "1" if any(key.startswith("extensions.") for key in shared) else "0"
    shared.setdefault("core.hookspath", str(repo.common_dir / "hooks"))
    shared |= {
        "core.repositoryformatversion": version,
        "core.bare": "false",
        "core.logallrefupdates": "true",
        "submodule.active": ".",
        **_WITHOUT_PERSON,
    }
    return "".join(config_entry(key, value) for key, value in sorted(shared.items()))


def config_entry(key: str, value: str) -> str:
    """A setting as a file of git's configuration has it."""
    section, _, rest = key.partition(".")
    middle, dot, name = rest.rpartition(".")
    title = f"{section} {_quoted(middle)}" if dot else section
    return f"[{title}]\n\t{name} = {_quoted(value)}\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'


def _shown_refs(repo: Repository) -> bytes:
    """The person's branches and tags, so that `git diff main` works; no other task's branch.

    Of very many, the branches alone: crew must be able to read the list again.
    """
    found: dict[str, str] = {}
    packed = read_text(repo.common_dir / PACKED, most=_LARGEST_OF_PERSON) or ""
    for line in packed.splitlines():
        at, _, ref = line.partition(" ")
        if _is_shown(ref):
            found[ref] = at
    for ref in loose_refs(repo.common_dir):
        at = (read_text(f"{repo.common_dir}/{ref}", most=200) or "") if _is_shown(ref) else ""
        if len(at) >= 40 and " " not in at:
            found[ref] = at
    lines = [f"{at} {ref}\n" for ref, at in sorted(found.items())]
    if sum(map(len, lines)) > LARGEST_LIST // 2:  # the agent's own need room too
        lines = [line for line in lines if " refs/heads/" in line]
    return "".join(lines).encode("utf-8", "surrogateescape")


def _merged_refs(*lists: bytes) -> bytes:
    """Lines of packed refs in the order that git needs. A later list wins."""
    lines = (line for one in lists for line in one.splitlines())
    found = {ref: at for at, _, ref in (line.partition(b" ") for line in lines)}
    return b"".join(at + b" " + ref + b"\n" for ref, at in sorted(found.items()))


def _is_shown(ref: str) -> bool:
    return ref.startswith(("refs/heads/", "refs/tags/", "refs/remotes/")) and not ref.startswith(
        "refs/heads/crew-"
    )


def _excludes(repo: Repository, crew_git: Path) -> bytes:
    both = (repo.common_dir / "info" / "exclude", crew_git / EXCLUDES)
    return b"".join(_lines(file) for file in both)


def _lines(file: Path) -> bytes:
    try:
        text = file.read_bytes()
    except OSError:
        return b""
    return text if text.endswith(b"\n") or not text else text + b"\n"


def _clear(folder: Path, *, keep: str = "") -> None:
    if is_folder(folder):
        for entry in folder.iterdir():
            if entry.name != keep:
                remove(entry)
    else:
        remove(folder)
