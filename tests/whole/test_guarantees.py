"""Every promise of docs/guarantees.md names the test that holds it, and the test is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:spark/)?test_\w+\.py)::(test_\w+)`", PAGE)))


@cache
def names_in(file: str) -> set[str]:
    (found,) = TESTS.glob(file) if "/" in file else (path for path in TESTS.rglob(file) if path.parent.name != "spark")
    tree = ast.parse(found.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_the_page_names_is_there(file, name):
    assert name in names_in(file)


def test_every_promise_and_every_fault_has_its_test():
    """Each row of a table of promises or faults ends with a test, or a command that runs one."""
    begin, end = PAGE.index("## Resuming"), PAGE.index("## How to look for more")
    rows = [line for line in PAGE[begin:end].splitlines() if line.startswith("| ") and not line.startswith("|---")]
    errors = PAGE[PAGE.index("## Errors") : PAGE.index("## What once broke")]
    unheld = [row for row in rows if "::test_" not in row and "| test |" not in row and row not in errors]
    assert not unheld
    assert len(NAMED) > 30


def test_commands_of_the_page_are_in_the_makefile():
    makefile = (TESTS.parent / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)`", PAGE)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
