"""`python -m experiments`: the paper's tables and figures."""

import os

# One thread per run, said before NumPy is loaded: times are those of one core, and runs side by side share the others.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(variable, "1")

import typer  # noqa: E402

from driftgp.cli import main  # noqa: E402
from experiments.command import reproduce  # noqa: E402

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(reproduce)

if __name__ == "__main__":
    main(app)
