"""The environment as the last layer: `CREW_<TABLE>_<KEY>` overrides all files."""

from collections.abc import Iterator, Mapping

from crew.config.model import TABLES, AgentsSettings, TuiSettings
from crew.config.reserved_keys import NOT_YET
from crew.config.validate_config import Layer, check, readers, typed_value

PREFIX = "CREW_"


def variable_layers(environ: Mapping[str, str]) -> Iterator[Layer]:
    """One checked layer for each variable, so that errors and origins can name it.

    Other variables that begin with CREW_ are not config: crew passes many to its agents. An empty
    variable counts as unset.
    """
    given = [name for name, value in environ.items() if name.startswith(PREFIX) and value]
    if not given:
        return
    known = {variable_name(path): path for path in _paths()}
    for name in sorted(given):
        if path := known.get(name):
            table, key = path
            layer = Layer(
                name=name, text="", values={table: {key: typed_value(path, environ[name])}}
            )
            check(layer)
            yield layer


def variable_name(path: tuple[str, ...]) -> str:
    return PREFIX + "_".join(path).upper()


def _paths() -> Iterator[tuple[str, str]]:
    for table, model in {**TABLES, "agents": AgentsSettings, "tui": TuiSettings}.items():
        yield from ((table, key) for key in readers(model))
    yield from ((table, key) for table, keys in NOT_YET.items() for key in keys)
