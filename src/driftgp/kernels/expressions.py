"""Kernels written down: `"linear + se"`, `"se(lengthscale=2) * periodic(period=24) + constant"`.

    sum      =  product { "+" product }
    product  =  factor { "*" factor }
    factor   =  "(" sum ")"  |  name [ "(" name "=" number { "," name "=" number } ")" ]

The text is read by recursive descent. Nothing in it is ever evaluated: a name is looked up in a table.
"""

import re
from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple, NoReturn

from driftgp import kernels
from driftgp.kernels import Kernel

KERNELS: dict[str, type[Kernel]] = {
    "se": kernels.SE,
    "rbf": kernels.SE,
    "matern12": kernels.Matern12,
    "matern32": kernels.Matern32,
    "matern52": kernels.Matern52,
    "rq": kernels.RationalQuadratic,
    "periodic": kernels.Periodic,
    "linear": kernels.Linear,
    "constant": kernels.Constant,
}
LONGEST = 1000  # characters; also keeps the descent shallow
DEEPEST = 50  # parentheses within parentheses
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|(?P<name>\w+)|(?P<mark>[-+*(),=]))"
)


class _Token(NamedTuple):
    kind: str  # "number", "name", "mark" or "end"
    text: str
    column: int  # counted from 1


def parse_kernel(text: str, inputs: int = 1) -> Kernel:
    """Return the kernel that an expression describes.

    Default parameters suit standardised inputs, `inputs` of them. The lengthscale is √D, the
    typical distance of two samples. The variance of a linear kernel is 1/D for each input.

    Args:
        text: kernels by their names in lower case, with + and * and brackets; parameters by name in brackets.
        inputs: number of inputs D.

    >>> kernel = parse_kernel("linear + se(lengthscale=2.5)", inputs=4)
    >>> float(kernel.first.variance), float(kernel.second.lengthscale)
    (0.25, 2.5)
    """
    return _Parser(text, inputs).whole()


class _Parser:
    def __init__(self, text: str, inputs: int) -> None:
        if len(text) > LONGEST:
            raise ValueError(f"kernel must have at most {LONGEST} characters, as 'linear + se' has; got {len(text)}")
        self.text, self.inputs, self.depth, self.at = text, inputs, 0, 0
        self.tokens = self._tokens()

    def whole(self) -> Kernel:
        kernel = self._sum()
        if self._next.kind != "end":
            self._refuse("'+', '*' or the end")
        return kernel

    # ---- the rules

    def _sum(self) -> Kernel:
        return self._chain("+", self._product, lambda first, second: first + second)

    def _product(self) -> Kernel:
        return self._chain("*", self._factor, lambda first, second: first * second)

    def _chain(self, mark: str, part: Callable[[], Kernel], join: Callable[[Kernel, Kernel], Kernel]) -> Kernel:
        kernel = part()
        while self._take(mark):
            kernel = join(kernel, part())
        return kernel

    def _factor(self) -> Kernel:
        if self._take("("):
            self.depth += 1
            if self.depth > DEEPEST:
                raise ValueError(f"kernel has more than {DEEPEST} parentheses within each other: leave some out")
            kernel = self._sum()
            self._need(")")
            self.depth -= 1
            return kernel
        name = self._next.text.casefold()
        if self._next.kind != "name" or name not in KERNELS:
            self._refuse(f"one of {', '.join(KERNELS)}, or '('")
        self.at += 1
        return self._make(name)

    def _make(self, name: str) -> Kernel:
        kind, start = KERNELS[name], self.tokens[self.at - 1].column
        known = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        given: dict[str, float] = {}
        if self._take("("):
            while True:
                parameter = self._next.text
                if parameter not in known or parameter in given:
                    self._refuse(f"a parameter of {name} ({', '.join(known)}), each once")
                self.at += 1
                self._need("=")
                given[parameter] = self._number()
                if not self._take(","):
                    break
            self._need(")")
        try:
            return kind(**self._defaults(kind) | given)
        except ValueError as error:
            raise ValueError(f"kernel {self.text!r}, column {start}: {error}") from error

    def _number(self) -> float:
        if self._next.kind != "number":
            self._refuse("a positive number")
        self.at += 1
        return float(self.tokens[self.at - 1].text)

    def _defaults(self, kind: type[Kernel]) -> dict[str, float]:
        if issubclass(kind, kernels.Linear):
            return {"variance": 1.0 / self.inputs}
        return {"lengthscale": self.inputs**0.5} if issubclass(kind, kernels.Stationary | kernels.Periodic) else {}

    # ---- tokens

    def _tokens(self) -> list[_Token]:
        tokens, position = [], 0
        end = len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            if match is None or match.lastgroup is None:
                start = end - len(self.text[position:end].lstrip())
                raise ValueError(
                    f"kernel {self.text!r}, column {start + 1}: {self.text[start]!r} means nothing here; "
                    "an example is 'linear + se'"
                )
            kind = match.lastgroup
            tokens.append(_Token(kind, match[kind], match.start(kind) + 1))
            position = match.end()
        return [*tokens, _Token("end", "", end + 1)]

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, mark: str) -> bool:
        here = self._next.kind == "mark" and self._next.text == mark
        self.at += here
        return here

    def _need(self, mark: str) -> None:
        if not self._take(mark):
            self._refuse(repr(mark))

    def _refuse(self, expected: str) -> NoReturn:
        found = repr(self._next.text) if self._next.text else "the end"
        raise ValueError(f"kernel {self.text!r}, column {self._next.column}: expected {expected}; found {found}")
