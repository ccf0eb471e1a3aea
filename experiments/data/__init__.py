"""Readers of the load and sales records of the paper, and the streams made of them.

polars is imported when a file is read. Files are looked for in the argument ``data`` or in the directory that
DRIFTGP_DATA names.
"""

from experiments.data.daily import Daily
from experiments.data.isone import ZONES, read_isone
from experiments.data.sales import read_online_retail, read_store_sales
from experiments.data.sets import load_streams, online_retail_stream, store_sales_stream

__all__ = [
    "ZONES",
    "Daily",
    "load_streams",
    "online_retail_stream",
    "read_isone",
    "read_online_retail",
    "read_store_sales",
    "store_sales_stream",
]
