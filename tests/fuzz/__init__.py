"""Hostile input, made up at random and reproducible: states, files, sequences of calls, stacks, interrupts, a long run.

    make fuzz                                     two thousand states and saved files, a thousand tables and interrupts
    make fuzz ARGS="states --seed 7 --only 123"   one case again, in this process, with its traceback

A case is a function of a random generator, which its kind, the seed and its number determine. It returns in a word what
came of it, and raises where the library did what it must not do. A worker process goes through the cases: a case that
ends the process, or takes longer than ten seconds, is a failure like any other.
"""
