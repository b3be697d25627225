"""Templates know values and conditions, and nothing in a value can become a command."""

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crew.domain.kernel.errors import UsageError
from crew.domain.kernel.templates import check, expand, shell_command, shell_script


def words(template, **values):
    return shlex.split(expand(template, values, quote=shlex.quote))


def test_values_are_put_in_and_quoted():
    assert words("run {{.Prompt}} {{ .Model }}", Prompt="it's $(id)", Model="big one") == [
        "run",
        "it's $(id)",
        "big one",
    ]


def test_a_list_becomes_as_many_words_as_it_has():
    assert words("run {{.Args}} end", Args=("-a", "b c")) == ["run", "-a", "b c", "end"]
    assert words("run {{.Args}} end", Args=()) == ["run", "end"]


@pytest.mark.parametrize(
    ("model", "args", "expanded"),
    [("m", "", "x m -"), ("", "a", "x none a"), ("", "", "x none -")],
)
def test_conditions_choose_a_part(model, args, expanded):
    template = "x {{if .Model}}{{.Model}}{{else}}none{{end}} {{if .Args}}{{.Args}}{{else}}-{{end}}"
    assert " ".join(words(template, Model=model, Args=args)) == expanded


def test_conditions_nest():
    template = (
        "{{if .Model}}a{{if .Args}}b{{else}}c{{end}}{{else}}{{if .Args}}d{{else}}e{{end}}{{end}}"
    )
    results = [
        expand(template, {"Model": model, "Args": args}, quote=str)
        for model in ("m", "")
        for args in ("a", "")
    ]
    assert results == ["ab", "ac", "d", "e"]


def test_a_value_that_looks_like_a_template_stays_text():
    assert words("{{.Prompt}}", Prompt="{{.Model}} {{end}}", Model="m") == ["{{.Model}} {{end}}"]


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UsageError) as refused:
        check("run {{.Promt}}")
    assert "Promt" in refused.value.message
    assert "Prompt" in refused.value.hint
    with pytest.raises(UsageError):
        expand("{{if .Nope}}x{{end}}", {"Prompt": ""}, quote=str)


@pytest.mark.parametrize(
    "template",
    [
        "{{if .Model}}x",
        "x{{end}}",
        "{{else}}",
        "{{if .Model}}{{else}}{{else}}{{end}}",
        "{{.A.B}}",
        "{{}}",
    ],
)
def test_what_is_not_a_template_is_refused(template):
    with pytest.raises(UsageError):
        check(template)


def through_a_shell(tmp_path, template, values):
    """What a real shell makes of the template, as a command and as a script."""
    script = tmp_path / "script"
    script.write_text(shell_script(template, values))
    ways = [shell_command(template, values), ("sh", str(script))]
    done = [subprocess.run(way, cwd=tmp_path, capture_output=True, check=True) for way in ways]
    assert done[0].stdout == done[1].stdout
    assert [path.name for path in tmp_path.iterdir()] == ["script"]
    return done[0].stdout.decode()


HOSTILE = [
    "$(touch ran)",
    "`touch ran`",
    "'; touch ran; '",
    '"; touch ran; "',
    "a\ntouch ran\n",
    "-n --help",
    "\\",
    "*  ${HOME} ~ # x",
    "\udcff".encode(errors="surrogateescape").decode("latin-1"),
    "x'" * 40_000 + "$(touch ran)",
]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value[:12]))
@pytest.mark.parametrize(
    "template",
    [
        "printf '<%s>' {{.Prompt}}",
        """printf '<%s>' "{{.Prompt}}" """,
        "printf '<%s>' '{{.Prompt}}'",
        "# it's \"\nprintf '<%s>' {{.Prompt}}",
        "printf '<%s>' {{if .Model}}{{else}}{{.Prompt}}{{end}}",
        "printf %s \\\" a#'b' \"'\" >/dev/null; printf '<%s>' {{.Prompt}}",
    ],
)
def test_a_hostile_value_reaches_the_program_and_runs_nothing(tmp_path, value, template):
    said = through_a_shell(tmp_path, template, {"Prompt": value, "Model": ""})
    assert said == f"<{value}>"


def test_quotes_around_a_value_may_hold_more_than_it(tmp_path):
    values = {"TaskID": "7 $(touch ran)", "Args": ("a b", "c"), "Worktree": "/w t"}
    template = "cd /; echo \"task {{.TaskID}} of {{.Args}}\" in '{{.Worktree}}'"
    said = through_a_shell(tmp_path, template, values)
    assert said == "task 7 $(touch ran) of a b c in /w t\n"


def test_even_where_quotes_are_misread_no_value_runs(tmp_path):
    template = 'cat <<EOF\nit\'s {{.Prompt}}\nEOF\necho "$(echo "{{.Prompt}}")"'
    said = through_a_shell(tmp_path, template, {"Prompt": "$(touch ran) `touch ran`"})
    assert "$(touch ran) `touch ran`" in said


def test_a_script_keeps_its_first_line_first_and_runs_by_itself(tmp_path):
    template = '#!/bin/sh\ncd {{.Worktree}}\npwd; echo "done for {{.TaskID}}"\n'
    place = tmp_path / "it's here $(id)"
    place.mkdir()
    script = tmp_path / "setup"
    script.write_text(shell_script(template, {"Worktree": str(place), "TaskID": "1"}))
    script.chmod(0o755)
    said = subprocess.run([script], capture_output=True, text=True, check=True).stdout
    assert said == f"{place}\ndone for 1\n"
    assert shell_script("#!/usr/bin/env bash\ntrue\n", {}) == "#!/usr/bin/env bash\ntrue\n"


def test_a_script_in_another_language_is_refused():
    with pytest.raises(UsageError, match="python3"):
        shell_script("#!/usr/bin/env python3\nprint({{.TaskID}})\n", {"TaskID": "1"})


@given(st.text().filter(lambda text: "\0" not in text))
def test_any_value_stays_one_word(value):
    assert words("run {{.Prompt}} end", Prompt=value) == ["run", value, "end"]
