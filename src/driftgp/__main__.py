"""Where the command `driftgp`, or `python -m driftgp`, begins, with or without the libraries that it needs."""

import sys

from driftgp.base.extras import needs


def main() -> None:
    """Run the command; without its libraries say what to install, and answer `--version` all the same."""
    try:
        with needs("the command driftgp", extra="cli"):
            import rich  # noqa: F401
            import typer  # noqa: F401

            from driftgp import cli
    except ModuleNotFoundError as error:
        if "pip install" not in str(error):
            raise
        if sys.argv[1:] == ["--version"]:
            from driftgp.diagnostics import show_versions

            show_versions()
            return
        sys.exit(str(error))
    cli.main()


if __name__ == "__main__":
    main()
