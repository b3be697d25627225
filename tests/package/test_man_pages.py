"""The manual pages, which are made from the help of the commands."""

import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from crew.domain.kernel.errors import CrewError
from crew.front.cli.catalogue import COMMANDS

MAKER = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "man_pages.py"))


@pytest.fixture(scope="module")
def pages():
    return MAKER["pages"]()


def test_every_command_has_a_page_that_the_first_page_names(pages):
    assert set(pages) == {"crew", "git-crew", *(f"crew-{name}" for name in COMMANDS)}
    for name in COMMANDS:
        assert f".BR crew\\-{name} (1)\n" in pages["crew"]
    assert pages["git-crew"] == ".so man1/crew.1\n"


def test_the_first_page_explains_every_exit_code(pages):
    def codes(error):
        yield error.exit_code
        for below in error.__subclasses__():
            yield from codes(below)

    assert set(codes(CrewError)) <= set(MAKER["ENDINGS"])


def test_a_page_holds_the_options_the_example_and_the_commands_below(pages):
    new, quest = pages["crew-new"], pages["crew-quest"]
    assert "\\fB\\-t, \\-\\-title TEXT\\fR" in new
    assert "\\fB\\-h, \\-\\-help\\fR" in new
    assert "\n.SH EXAMPLE\n" in new
    assert ".SS crew quest cancel\n" in quest
    assert quest.count("\\-\\-no\\-color") == 1, "common options once a page"


def test_what_roff_would_take_for_an_instruction_is_text():
    assert MAKER["_prose"](".crew is `a-b` \\ …") == "\\&.crew is \\fBa\\-b\\fR \\e \\[u2026]"


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
def test_groff_has_no_warning_for_any_page(pages, tmp_path):
    (tmp_path / "man1").mkdir()
    for name, text in pages.items():
        (tmp_path / "man1" / f"{name}.1").write_text(text)
    done = subprocess.run(
        ["groff", "-ww", "-b", "-z", "-man", "-Tutf8", *sorted((tmp_path / "man1").iterdir())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
