"""`python -m driftgp`: the command, where its name is not on the path."""

from driftgp.command import main

if __name__ == "__main__":
    main()
