"""The environment as the last layer: `CREW_<TABLE>_<KEY>` sets a key, whatever the files say."""

from collections.abc import Iterator, Mapping

from crew.config.model import TABLES, AgentsSettings
from crew.config.reserved_keys import NOT_YET, TABLES_NOT_YET
from crew.config.validate_config import Layer, check, readers, typed_value

PREFIX = "CREW_"


def variable_layers(environ: Mapping[str, str]) -> Iterator[Layer]:
    """One checked layer a variable, so that a mistake and an origin name it.

    Whatever else begins with CREW_ (crew tells its agents much that way) is no config, and an empty
    variable counts as none.
    """
    given = [name for name, value in environ.items() if name.startswith(PREFIX) and value]
    if not given:
        return
    known = {variable_name(path): path for path in _paths()}
    for name in sorted(given):
        if path := known.get(name) or _table_not_yet(name):
            table, key = path
            layer = Layer(
                name=name, text="", values={table: {key: typed_value(path, environ[name])}}
            )
            check(layer)
            yield layer


def variable_name(path: tuple[str, ...]) -> str:
    return PREFIX + "_".join(path).upper()


def _table_not_yet(name: str) -> tuple[str, str] | None:
    """The table that this version cannot honour, for a variable that names a key inside it."""
    return next(
        (path for path in TABLES_NOT_YET if name.startswith(variable_name(path) + "_")), None
    )


def _paths() -> Iterator[tuple[str, str]]:
    for table, model in {**TABLES, "agents": AgentsSettings}.items():
        yield from ((table, key) for key in readers(model))
    yield from ((table, key) for table, keys in NOT_YET.items() for key in keys)
