"""Templates know values and conditions, and nothing in a value can become a command."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crew.agents.templates import check, expand
from crew.domain.errors import UsageError


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


@pytest.mark.parametrize(
    "template", ['run "{{.Prompt}}"', "run '{{.Prompt}}'", 'run "a {{.Model}}"']
)
def test_quotes_around_a_value_are_refused(template):
    with pytest.raises(UsageError, match="quotes"):
        check(template)


@pytest.mark.parametrize(
    "template",
    ['run "a" {{.Prompt}}', "it\\'s {{.Prompt}}", '"\\"" {{.Prompt}}', "'\"' {{.Model}}"],
)
def test_closed_quotes_elsewhere_are_fine(template):
    check(template)


@given(st.text().filter(lambda text: "\0" not in text))
def test_any_value_stays_one_word(value):
    assert words("run {{.Prompt}} end", Prompt=value) == ["run", value, "end"]
