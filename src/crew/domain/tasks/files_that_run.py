"""Recognises files that run code outside the gate: in CI, in git hooks, in editors and agents.

A person should look at a change to one of them: it may run where crew's sandbox does not apply.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

_REASONS = {
    "CI": (
        *(".github/workflows/*", ".github/actions/*", ".gitlab-ci.yml", ".gitlab/*", "Jenkinsfile"),
        *(".circleci/*", "azure-pipelines.yml", ".travis.yml", ".buildkite/*", ".drone.yml"),
        *("bitbucket-pipelines.yml", ".woodpecker/*", ".woodpecker.yml", "cloudbuild.yaml"),
    ),
    "git hooks": (
        *(".husky/*", ".githooks/*", "hooks/*", "lefthook.yml", ".lefthook.yml"),
        *(".pre-commit-config.yaml", ".overcommit.yml", ".gitattributes", ".gitmodules"),
    ),
    "agent instructions": (
        *("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md"),
        *(".claude/*", ".mcp.json", ".codex/*", ".cursor/*", ".cursorrules", ".gemini/*"),
        *(".windsurfrules", ".windsurf/*", ".clinerules*", ".aider*", ".opencode/*"),
        *("opencode.json", ".github/copilot-instructions.md", ".github/instructions/*"),
    ),
    "editor tasks": (".vscode/*", ".idea/*", ".devcontainer/*", ".zed/*", ".nvim.lua", ".exrc"),
    "build scripts": (
        *("Makefile", "makefile", "GNUmakefile", "*.mk", "justfile", "Justfile", "Taskfile.yml"),
        *("package.json", "setup.py", "build.rs", "Rakefile", "noxfile.py", "tox.ini"),
        *(".npmrc", ".yarnrc.yml", ".envrc", "mise.toml", ".mise.toml", "Dockerfile"),
    ),
    "crew's own files": (".crew.toml", ".crew/*"),
}
"""Patterns by reason. One with a slash is a path from the top; else the file's name counts."""

_TASKS = ".crew/tasks/"


def why_it_runs(path: str) -> str:
    """Why a file runs code elsewhere, such as "CI"; empty if it is an ordinary file."""
    if path.casefold().startswith(_TASKS):
        return ""
    for reason, patterns in _REASONS.items():
        if any(_matches(path.casefold(), pattern.casefold()) for pattern in patterns):
            return reason
    return ""


def files_that_run(paths: Iterable[str]) -> dict[str, str]:
    """The files among these that run code elsewhere, each with the reason."""
    return {path: reason for path in sorted(paths) if (reason := why_it_runs(path))}


def _matches(path: str, pattern: str) -> bool:
    """A folder at any depth counts: a tool may be started in a part of the repository."""
    folder, is_folder, _ = pattern.partition("/*")
    if is_folder:
        return f"/{folder}/" in f"/{path}"
    if "/" in pattern:
        return path == pattern
    return fnmatchcase(path.rpartition("/")[2], pattern)
