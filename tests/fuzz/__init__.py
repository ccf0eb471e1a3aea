"""Hostile input, made up at random and reproducible: states, files, calls, stacks, streams, interrupts, a long run.

    make fuzz                                            all kinds: hundreds or thousands of cases each
    make fuzz ARGS="states --seed 7 --only 123"          one case again, in this process, with its traceback
    make fuzz ARGS="grammar --effort high --cases 200"   streams from a grammar, by the default model of an effort

A case is a function of a random generator, which its kind, the seed and its number determine. It returns what came of
it, in a word, or for a stream the rows that break a rule and its errors (`tests.fuzz.judge`), and raises where the
library did what it must not do. A worker process goes through the cases: a case that ends the process, or takes longer
than ten seconds, is a failure like any other.
"""
