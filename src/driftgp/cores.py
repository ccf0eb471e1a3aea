"""All the cores of the process, by threads: compiled code lets go of Python's lock, so threads are enough."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

_NAME = "driftgp's cores"

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def each(work: Callable[[Item], Result], items: Iterable[Item], threads: int | None = None) -> list[Result]:
    """Do some work for each of several items, as many at a time as there are cores, or threads asked for.

    >>> each(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    items = list(items)
    threads = min(len(items), cores() if threads is None else threads)
    if threads <= 1 or threading.current_thread().name.startswith(_NAME):  # one of the threads must not wait for them
        return [work(item) for item in items]
    return list(_pool(os.getpid(), threads).map(work, items))


@lru_cache(maxsize=8)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:  # noqa: ARG001
    """Threads that stay: a new one starts on the core of the one that made it, and has to wait there for its turn.

    A process has its own, since those of another do not come along when it is forked.
    """
    return ThreadPoolExecutor(threads, _NAME)
