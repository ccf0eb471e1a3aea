"""Every public name says what it is, what each of its arguments means, and shows itself in an example that runs."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import driftgp

PAGES = sorted((Path(__file__).parents[2] / "docs" / "reference").glob("*.md"))
PAGE = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
# Modules all of whose public names are for users.
MODULES = ("fleet", "forecasting", "alarms", "comparison", "sklearn", "river", "skpro", "sktime", "wrappers", "members")

BEHIND = {"Predicted"}  # what skpro gets, and calls by its own names


class Entry(NamedTuple):
    """A name on the page of the reference, and which of its methods the page shows: None for all."""

    path: str
    methods: tuple[str, ...] | None


def entries() -> list[Entry]:
    found = []
    for path, options in re.findall(r"^::: ([\w.]+)\n((?:    .*\n)*)", PAGE, re.MULTILINE):
        members = re.search(r"^ +members: (.*)", options, re.MULTILINE)
        shown = None if members is None else tuple(re.findall(r"\w+", members[1].replace("false", "")))
        found.append(Entry(path, shown))
    return found


def thing_of(path: str) -> Any:
    """What a name stands for; skips a test whose library is not installed."""
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        try:
            return getattr(importlib.import_module(module), name)
        except ImportError as missing:
            pytest.skip(str(missing))


def text_of(thing: Any) -> str:
    """Its docstring; of a class with that of its constructor, and of what it is made from."""
    text = inspect.getdoc(thing) or ""
    if inspect.isclass(thing):
        own = [part for part in thing.__mro__ if part.__module__.startswith("driftgp")]
        text = "\n".join(inspect.cleandoc(each.__doc__ or "") for part in own for each in (part, part.__init__))
    return text


def arguments(thing: Any) -> list[str]:
    parameters = inspect.signature(thing).parameters
    return [name for name in parameters if name not in ("self", "cls") and not name.startswith("_")]


def unexplained(thing: Any, of: Any = None) -> list[str]:
    """Arguments without a line of their own (``name: what it is``); of a method, those of which nothing is said."""
    text = text_of(thing) if of is None else f"{text_of(thing)}\n{text_of(of)}"
    form = r"^\s*{}: \S" if of is None else r"\b{}\b"
    return [name for name in arguments(thing) if not re.search(form.format(name), text, re.MULTILINE)]


def public_names(module: str) -> list[str]:
    found = thing_of(f"driftgp.{module}")
    names = getattr(found, "__all__", None) or [
        name
        for name, each in vars(found).items()
        if not name.startswith("_") and getattr(each, "__module__", "") == found.__name__ and name not in BEHIND
    ]
    return [name for name in names if inspect.isclass(vars(found)[name]) or inspect.isfunction(vars(found)[name])]


@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry.path)
def test_arguments_are_explained_and_an_example_runs(entry):
    thing = thing_of(entry.path)
    if inspect.ismodule(thing):
        things = {name: getattr(thing, name) for name in entry.methods or public_names(entry.path.split(".", 1)[1])}
    else:
        things = {entry.path: thing}
    for name, each in things.items():
        assert not unexplained(each), f"{name} does not explain {unexplained(each)}"
        assert ">>>" in text_of(each), f"{name} shows no example"
        shown = [m for m in dir(each) if not m.startswith("_")] if entry.methods is None else entry.methods
        for method in (getattr(each, m, None) for m in shown) if inspect.isclass(each) else ():
            if inspect.isroutine(method) and str(getattr(method, "__module__", "")).startswith("driftgp"):
                assert method.__doc__, f"{name}.{method.__name__} has no docstring"
                silent = unexplained(method, of=each)
                assert not silent, f"{name}.{method.__name__} does not speak of {silent}"


def test_the_page_has_every_public_name():
    on_page = {entry.path.rpartition(".")[2] for entry in entries()}
    on_page |= {name for entry in entries() for name in entry.methods or ()}
    missing = set(driftgp.__all__) - on_page
    for module in MODULES:
        missing |= set(public_names(module)) - on_page
    assert not missing
