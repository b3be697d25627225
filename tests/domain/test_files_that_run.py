"""Changes to files that run code outside the gate are recognised, wherever they are."""

import pytest

from crew.domain.tasks.files_that_run import files_that_run, why_it_runs


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        (".github/workflows/ci.yml", "CI"),
        (".gitlab-ci.yml", "CI"),
        (".circleci/config.yml", "CI"),
        (".buildkite/pipeline.yml", "CI"),
        (".woodpecker/build.yml", "CI"),
        (".github/actions/setup/action.yml", "CI"),
        ("Jenkinsfile", "CI"),
        ("azure-pipelines.yml", "CI"),
        ("bitbucket-pipelines.yml", "CI"),
        (".husky/pre-commit", "git hooks"),
        (".pre-commit-config.yaml", "git hooks"),
        ("CLAUDE.md", "agent instructions"),
        ("web/AGENTS.md", "agent instructions"),
        ("claude.md", "agent instructions"),  # the same file on a disk that ignores case
        (".claude/settings.json", "agent instructions"),
        (".mcp.json", "agent instructions"),
        (".codex/config.toml", "agent instructions"),
        (".cursor/rules/a.mdc", "agent instructions"),
        (".vscode/tasks.json", "editor tasks"),
        ("Makefile", "build scripts"),
        ("web/package.json", "build scripts"),
        ("setup.py", "build scripts"),
        (".crew.toml", "crew's own files"),
        (".crew/config.toml", "crew's own files"),
    ],
)
def test_a_file_that_runs_elsewhere_is_named_with_its_reason(path, reason):
    assert why_it_runs(path) == reason


@pytest.mark.parametrize(
    "path",
    [
        *("src/main.py", "tests/conftest.py", "README.md", "docs/Makefile.md", "package.json.md"),
        *(".crew/tasks/default/1.md", "src/claude/x.py", "mygithub/workflows/x.yml", "a.github"),
    ],
)
def test_an_ordinary_file_is_not(path):
    assert why_it_runs(path) == ""


def test_many_files_are_sorted():
    found = files_that_run(["x.py", "Makefile", ".mcp.json"])
    assert found == {".mcp.json": "agent instructions", "Makefile": "build scripts"}
