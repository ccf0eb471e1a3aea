"""Streams to learn from: the toy generator, readers of real files, and the sets of the paper's experiments.

Importing it costs numpy alone. `load_bikes` has its file in the package. polars is imported when another file is read,
and belongs to the extra ``driftgp[cli]``. Those files are looked for in the argument ``data`` or in the directory that
DRIFTGP_DATA names.
"""

from driftgp.data.bikes import bike_sharing_stream, bikes_file, load_bikes
from driftgp.data.isone import ZONES, read_isone
from driftgp.data.sales import read_online_retail, read_store_sales
from driftgp.data.sets import load_streams, online_retail_stream, store_sales_stream
from driftgp.data.stream import Daily, Stream
from driftgp.data.toy import toy_signal, toy_stream, toy_streams, toy_times

__all__ = [
    "ZONES",
    "Daily",
    "Stream",
    "bike_sharing_stream",
    "bikes_file",
    "load_bikes",
    "load_streams",
    "online_retail_stream",
    "read_isone",
    "read_online_retail",
    "read_store_sales",
    "store_sales_stream",
    "toy_signal",
    "toy_stream",
    "toy_streams",
    "toy_times",
]
