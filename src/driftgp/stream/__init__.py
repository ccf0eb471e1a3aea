"""The stream behind every entry point: inputs, time, the choice of a model, its state, and labels still to come.

    reading   rows of any form → a block of numbers
    plan      columns → numbers, decided once, the same for all series of a fleet
    derived   inputs that follow from the past and from the calendar
    clock     time between rows, rows that come late, times that are not plausible
    begin     the first rows choose the model
    series    one series: predicts, learns, waits for labels
    stacks    the states of all series that have one model, in one array
    runtime   many series: their rows in few calls of the engine
    store     all of it as bytes, and back

`Online` is one series, `Fleet` many; every other entry point calls these two.
"""
