"""The person's git settings as programs in the sandbox see them: without what cannot work there.

A person's `~/.gitconfig` names keys, editors, helpers and files that the sandbox does not have.
With it, an agent's `git commit` would ask for a key, and a gate that commits in a temporary
repository would fail. So crew writes one file that takes its place, with the settings of all
included files.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from crew.domain.kernel.frozen import frozen
from crew.git.git_command import persons_settings
from crew.git.hardening import Setting
from crew.git.repository import Repository
from crew.git.task_repository.lay_repository import config_entry

_OF_ALL_REPOSITORIES = frozenset({"system", "global"})
_UNUSABLE = re.compile(
    r"include(if)?\..*"  # their values are here already
    r"|commit\.(gpgsign|template)|tag\.(gpgsign|forcesignannotated)|push\.gpgsign"
    r"|gpg\..*|user\.signingkey|(merge|pull)\.verifysignatures|log\.showsignature"
    r"|core\.(editor|pager|askpass|gitproxy|fsmonitor|alternaterefscommand|hookspath)"
    r"|sequence\.editor|pager\..*|interactive\.difffilter"
    r"|diff\.external|diff\..*\.(command|textconv)|init\.templatedir"
)
"""Settings that start a program or read a file which the sandbox does not have."""

_SECRET = re.compile(
    r"token|secret|passw|passphrase|smtppass|oauth|apikey|extraheader|cookie", re.IGNORECASE
)
_PASSWORD_IN_URL = re.compile(r"://[^/@\s]*:[^/@\s]*@")
_OVER_SSH = re.compile(r"url\.(ssh://|git\+ssh://|[^/]*@[^/]*:).*\.(pushinsteadof|insteadof)")
_TEXT_FILES = frozenset({"core.excludesfile", "core.attributesfile"})
_UNSIGNED = ("commit.gpgsign", "tag.gpgsign")


@frozen
class ShownSettings:
    """The content of the files, and the person's files with patterns that git reads besides.

    `own` stands in for the settings of the person's repository, where a linked worktree reads them.
    """

    content: bytes
    own: bytes
    text_files: tuple[str, ...]


def shown_settings(repo: Repository) -> ShownSettings:
    """The person's settings for all repositories, as far as they work in a sandbox."""
    return _shown(repo, persons_settings(repo.common_dir))


@lru_cache(maxsize=16)
def _shown(repo: Repository, settings: tuple[Setting, ...]) -> ShownSettings:
    persons = [one for one in from_people(repo, settings) if one.scope in _OF_ALL_REPOSITORIES]
    config = repo.common_dir / "config"
    own = [one for one in settings if one.origin == config and _works_in_own(one.key)]
    files = {one.key: one.value for one in persons if one.key in _TEXT_FILES and one.value}
    return ShownSettings(
        content=_file(one for one in persons if _works(one)),
        own=_file(own),
        text_files=tuple(files.values()),
    )


def _file(settings: Iterable[Setting]) -> bytes:
    entries = [config_entry(one.key, one.value) for one in settings]
    unsigned = [config_entry(key, "false") for key in _UNSIGNED]
    return "".join((*entries, *unsigned)).encode("utf-8", "surrogateescape")


def from_people(repo: Repository, settings: Iterable[Setting]) -> Iterator[Setting]:
    """The settings of files that no commit brings: those outside the checkout, or in `.git`."""
    root, own = repo.root.resolve(), repo.common_dir.resolve()
    for one in settings:
        file = one.origin.resolve()
        if file.is_relative_to(own) or not file.is_relative_to(root):
            yield one


def _works_in_own(key: str) -> bool:
    """Whether it works in the file that a linked worktree reads, which includes files of crew."""
    return _UNUSABLE.fullmatch(key) is None or key.startswith(("include", "core.hookspath"))


def _works(one: Setting) -> bool:
    is_unusable = _UNUSABLE.fullmatch(one.key) or _OVER_SSH.fullmatch(one.key)
    is_secret = _SECRET.search(one.key) or _PASSWORD_IN_URL.search(f"{one.key} {one.value}")
    return not is_unusable and not is_secret
