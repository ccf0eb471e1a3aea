"""For the site: examples in docstrings are code, and a constructor without arguments to describe says nothing."""

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n *\S.*)*", re.MULTILINE)  # up to the next blank line


class Examples(griffe.Extension):
    """Put a fence around each example, and leave out docstrings of constructors without a list of arguments."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that was read."""
        if obj.docstring is not None:
            if obj.name == "__init__" and "Args:" not in obj.docstring.value:
                obj.docstring = None  # the class has said all of it
                return
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match[str]) -> str:
    indent = found[1]
    return f"{indent}```pycon\n{found[0]}\n{indent}```"
