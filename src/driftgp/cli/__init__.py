"""The command `driftgp`: a thin shell around the library. A new command is a file here and a line below."""

from collections.abc import Callable
from typing import Annotated

import typer

from driftgp.cli import console
from driftgp.cli.compare import compare
from driftgp.cli.demo import demo
from driftgp.cli.forecast import forecast
from driftgp.cli.inspect import inspect
from driftgp.cli.options import WithCalendar
from driftgp.cli.run import run

app = typer.Typer(
    name="driftgp",
    help="Regression on streams that drift: predictions with honest intervals, sample by sample.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.command()(demo)
app.command(cls=WithCalendar)(compare)
app.command(cls=WithCalendar)(run)
app.command()(forecast)
app.command()(inspect)


def _print_version(wanted: bool) -> None:
    if wanted:
        from driftgp.diagnostics import show_versions

        show_versions()
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print versions and the engine, and stop."
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main(command: Callable[[], object] = app) -> None:
    """Run the command line; an error that the library explains is shown as its explanation alone."""
    try:
        command()
    except ValueError as error:
        console.complain(str(error))
        raise SystemExit(2) from None
    except ImportError as error:
        if 'pip install "driftgp[' not in str(error):
            raise
        console.complain(str(error))
        raise SystemExit(2) from None
    except OSError as error:
        named = error.filename is not None and error.strerror is not None
        console.complain(f"{error.filename}: {error.strerror}" if named else str(error))
        raise SystemExit(2) from None
