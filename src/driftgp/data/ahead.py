"""Looking ahead in an iterator."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Ahead(Iterator[T], Generic[T]):
    """An iterator that one can look ahead in; an error is raised when its place is come to."""

    def __init__(self, source: Iterator[T]) -> None:
        self.source, self.given = source, 0
        self.seen: deque[T | ValueError] = deque()

    def look(self, count: int) -> list[T]:
        """The next ones, up to a number or an error, which stay where they are."""
        while len(self.seen) < count and not (self.seen and isinstance(self.seen[-1], ValueError)):
            try:
                self.seen.append(next(self.source))
            except StopIteration:
                break
            except ValueError as error:
                self.seen.append(error)
        return [item for item in self.seen if not isinstance(item, ValueError)]

    def __next__(self) -> T:
        item = self.seen.popleft() if self.seen else next(self.source)
        self.given += 1
        if isinstance(item, ValueError):
            raise item
        return item
