"""A task that changes what runs elsewhere is flagged for people and for reviewers."""

AGENT = """\
mkdir -p .github/workflows; echo evil > .github/workflows/ci.yml; echo > plain.txt
git add -A; git commit -qm ci; echo DONE
"""
REVIEWER = """
[review]
mode = "single"
agent = "rev"
[agents.rev]
role = "reviewer"
command_template = "echo PASS"
"""


def test_a_task_that_changes_ci_is_flagged_in_show_and_in_the_review(scene):
    (scene.folder / "agent.sh").write_text(AGENT)
    scene.configure(REVIEWER)
    scene.ok("new", "--title", "one")
    scene.ok("run", "--drain", "--agents", "1")
    assert scene.ok("show", "1", "--json").json["runs_code"] == [".github/workflows/ci.yml"]
    assert "runs code: .github/workflows/ci.yml" in scene.ok("show", "1").out
    asked = (scene.root / ".crew/scripts/review-1-prompt.txt").read_text()
    assert "\n> '.github/workflows/ci.yml' (CI)\n" in asked
    assert "> 'plain.txt'" not in asked
