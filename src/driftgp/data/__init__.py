"""Streams to learn from: the toy generator, the bikes that come with the package, and readers of tables.

Importing it costs numpy alone. polars is imported when another file is read, and belongs to the extra
``driftgp[cli]``.
"""

from driftgp.data.bikes import bike_sharing_stream, bikes_file, load_bikes
from driftgp.data.stream import Stream
from driftgp.data.toy import toy_signal, toy_stream, toy_streams, toy_times

__all__ = [
    "Stream",
    "bike_sharing_stream",
    "bikes_file",
    "load_bikes",
    "toy_signal",
    "toy_stream",
    "toy_streams",
    "toy_times",
]
