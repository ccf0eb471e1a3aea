"""The runner: see the package."""

import argparse
import importlib
import json
import os
import select
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from tests.fuzz import judge

CASES = {
    "states": 2000,
    "files": 1000,
    "calls": 500,
    "stacks": 200,
    "interrupts": 1000,
    "saved": 2000,
    "grammar": 2000,
    "forecasts": 500,
}
JUDGED = ("grammar", "forecasts")  # whose cases return what is to be judged, and not a word
LONGEST = 10.0  # seconds for one case; a sanitiser takes longer


def generator(kind: str, seed: int, number: int) -> np.random.Generator:
    """What determines a case."""
    return np.random.default_rng([list(CASES).index(kind), seed, number])


def case_of(kind: str, effort: str) -> Callable[[np.random.Generator], Any]:
    """What runs a case of a kind."""
    case: Callable[..., Any] = importlib.import_module(f"tests.fuzz.{kind}").case
    return partial(case, effort=effort) if kind == "grammar" else case


def work(kind: str, effort: str, seed: int, begin: int, end: int) -> None:
    """Go through cases, in a process that may end with one of them."""
    case = case_of(kind, effort)
    warnings.simplefilter("error")
    for number in range(begin, end):
        print(json.dumps({"begin": number}), flush=True)
        try:
            told = {"end": number, "outcome": case(generator(kind, seed, number))}
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what is looked for)
            told = {"end": number, "failure": f"{type(error).__name__}: {error}"}
        print(json.dumps(told), flush=True)


def lines(kind: str, effort: str, seed: int, begin: int, end: int, longest: float) -> Iterator[dict[str, Any]]:
    """What a worker says, and how it ended if that was too early."""
    command = [sys.executable, "-m", "tests.fuzz", kind, "--effort", effort, "--seed", str(seed)]
    command += ["--worker", str(begin), str(end)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as worker:
        try:
            yield from _heard(worker, longest)
        finally:  # also where nobody listens any more, since time is up
            worker.kill()


def _heard(worker: "subprocess.Popen[bytes]", longest: float) -> Iterator[dict[str, Any]]:
    assert worker.stdout is not None
    number, rest, wait = None, b"", 120.0  # to start, it imports everything
    while True:
        if not select.select([worker.stdout], [], [], wait)[0]:
            yield {"end": number, "failure": f"still at work after {wait:.0f} s"}
            return
        block = os.read(worker.stdout.fileno(), 1 << 16)
        if not block:
            break
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            told = json.loads(line)
            number, wait = told.get("begin"), longest if "begin" in told else 120.0
            yield told
    if worker.wait() != 0 or number is not None:
        yield {"end": number, "failure": f"the process ended with code {worker.returncode}"}


def fuzz(kind: str, given: argparse.Namespace) -> list[tuple[int, str]]:
    """Go through the cases of a kind, and print what came of them."""
    failures: list[tuple[int, str]] = []
    found: dict[int, Any] = {}
    cases = given.cases or CASES[kind]
    begin, done, until = 0, 0, time.monotonic() + given.seconds
    slowest, began = 0.0, time.monotonic()
    while done < cases and time.monotonic() < until:
        for told in lines(kind, given.effort, given.seed, begin, cases, given.longest):
            if "begin" in told:
                began = time.monotonic()
                if began > until:
                    break
                continue
            if told["end"] is None:  # the worker ended, or hung, without a case
                raise SystemExit(f"{kind}: no worker could be started: {told['failure']}")
            slowest, done = max(slowest, time.monotonic() - began), done + 1
            begin = told["end"] + 1
            if "failure" in told:
                failures.append((told["end"], told["failure"]))
            else:
                found[told["end"]] = told["outcome"]
        else:
            continue
        break
    if kind in JUDGED:
        failures += [(number, wrong) for number, each in found.items() for wrong in judge.breaches(each)]
    print(f"{kind}, seed {given.seed}: {done} cases, {len(failures)} failures, the slowest case {slowest:.2f} s")
    report(kind, given, found, failures)
    return failures


def report(kind: str, given: argparse.Namespace, found: dict[int, Any], failures: list[tuple[int, str]]) -> None:
    """Print what came of the cases, and how to repeat those that failed."""
    if kind in JUDGED and found:
        print(judge.summary(found))
    else:
        for outcome, count in sorted(Counter(found.values()).items()):
            print(f"  {count:5d} {outcome}")
    again = f"{kind} --effort {given.effort}" if kind == "grammar" else kind
    for number, failure in sorted(failures):
        print(f'  FAILED make fuzz ARGS="{again} --seed {given.seed} --only {number}": {failure[:400]}')


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="make fuzz", description="Hostile states, files, calls and streams, by seed.")
    parser.add_argument("kinds", nargs="*", choices=[*CASES, []], help="which kinds; all by default")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, help="of each kind")
    parser.add_argument("--seconds", type=float, default=600.0, help="at most, for each kind")
    parser.add_argument("--longest", type=float, default=LONGEST, help="seconds for one case; 10 by default")
    parser.add_argument("--only", type=int, help="this one case, in this process")
    parser.add_argument("--effort", choices=("low", "medium", "high"), default="low", help="of grammar; low by default")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    kinds = given.kinds or list(CASES)
    if given.worker is not None:
        work(kinds[0], given.effort, given.seed, *given.worker)
    elif given.only is not None:
        found = case_of(kinds[0], given.effort)(generator(kinds[0], given.seed, given.only))
        print(json.dumps(found, indent=1) if isinstance(found, dict) else found)
    else:
        failed = [fuzz(kind, given) for kind in kinds]
        raise SystemExit(any(failed))


if __name__ == "__main__":
    main()
