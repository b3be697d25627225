"""The example of docs/why.md is true: two branches that pass, and a merge that does not."""

import subprocess

from docs.pages import blocks, section


def test_two_green_branches_make_a_red_main(tmp_path, bare_scene):
    (commands,) = blocks(section("why.md", "Two green branches make a red main"), "sh")
    steps, _, last = commands.rstrip().rpartition("\n")
    for script, works in ((steps, True), (f"cd shop; {last}", False)):
        done = subprocess.run(
            ["sh", "-e", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) == works, done.stderr
