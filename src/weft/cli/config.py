"""`weft config show`: every setting with its value and, on demand, where it came from."""

from typing import Annotated

import msgspec
import typer

from weft.base.settings import RunSettings, ServeSettings, config_path, describe_settings, load_settings
from weft.cli.output import print_table

app = typer.Typer(name="config", help="The settings of weft run and weft serve.")


@app.callback()
def _config() -> None:
    """The settings of weft run and weft serve: flag > environment > file > default."""


@app.command()
def show(
    origin: Annotated[bool, typer.Option("--origin", help="Also say which source won, and what a setting means")] = False,
) -> int:
    """Show the settings as `weft run` and `weft serve` would use them here."""
    rows = [*_rows(RunSettings, "run"), *_rows(ServeSettings, "serve")]
    if origin:
        print(f"settings file: {config_path()}")
        print_table(("SETTING", "VALUE", "ORIGIN", "UNIT", "MEANING"), rows)
    else:
        print_table(("SETTING", "VALUE"), [row[:2] for row in rows])
    return 0


def _rows(kind: type[RunSettings] | type[ServeSettings], section: str) -> list[tuple[str, ...]]:
    resolved = load_settings(kind, {})
    values = msgspec.structs.asdict(resolved.values)
    return [
        (f"{section}.{name}", _text(values[name]), resolved.origins[name], about.unit, about.help)
        for name, about, _ in describe_settings(kind)
    ]


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(value) or "-"
    return "-" if value in (None, "") else str(value)
