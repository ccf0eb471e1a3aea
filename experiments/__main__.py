"""`python -m experiments`: the paper's tables and figures."""

import typer

from driftgp.cli import main
from experiments.command import reproduce

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(reproduce)

if __name__ == "__main__":
    main(app)
