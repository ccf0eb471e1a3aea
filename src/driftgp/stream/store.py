"""All that a stream or a fleet knows as bytes, and back, to the last bit.

A header in JSON has the settings, the columns, and what each series knows. Arrays and the states of the models are the
payload, one after another, as in memory. `driftgp.models.admission` checks a state from outside: what follows from
other fields is computed again and compared. Nothing in the bytes is ever executed.
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from functools import reduce
from typing import Any

import numpy as np

from driftgp.base import sealed
from driftgp.models import admission
from driftgp.models.model import Model, State
from driftgp.stream.begin import Default, Given, Start
from driftgp.stream.keys import SeriesKey
from driftgp.stream.model_json import model_of, plain
from driftgp.stream.plan import Plan
from driftgp.stream.runtime import Streams
from driftgp.stream.series import Series
from driftgp.stream.settings import Settings, settings
from driftgp.stream.stacks import Stack, words_of

_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def to_bytes(
    kind: str,
    streams: Streams,
    keys: Sequence[SeriesKey] | None = None,
    extra: dict[str, Any] | None = None,
    *,
    alone: bool = False,
) -> bytes:
    """All that is known of these series, or of all of them; `alone` writes one series without its key."""
    return sealed.seal(kind, to_tree(streams, keys, extra, alone=alone))


def to_tree(
    streams: Streams,
    keys: Sequence[SeriesKey] | None = None,
    extra: dict[str, Any] | None = None,
    *,
    alone: bool = False,
) -> dict[str, Any]:
    """The same as a tree with arrays, which other files may hold too."""
    chosen = list(streams.series) if keys is None else keys
    stacks: dict[int, tuple[Stack, list[int]]] = {}
    entries = []
    for key in chosen:
        series = streams.series[key]
        place = None
        if series.slot is not None:
            stack, slots = stacks.setdefault(id(series.slot.stack), (series.slot.stack, []))
            place = [list(stacks).index(id(stack)), len(slots)]
            slots.append(series.slot.number)
        entries.append([None if alone else key, place, series.to_json()])
    return {
        "settings": streams.settings.to_json(),
        "start": _start_to_json(streams.start),
        "begun": streams.begun,
        "named": streams.named,
        "outputs": streams.outputs,
        "plan": None if streams.planned is None else streams.planned.to_json(),
        "stacks": [
            {"model": plain(stack.model), "layout": asdict(stack.layout), "records": words_of(stack.records)[slots]}
            for stack, slots in stacks.values()
        ],
        "series": entries,
        "common": None if streams.common is None or alone else state_to_json(streams.common),
        "extra": extra or {},
    }


def from_bytes(kind: str, data: bytes, given: Model | Start | None = None) -> Streams:
    """Take back what `to_bytes` gave. A model with a part that is not in the library has to be given."""
    return from_tree(sealed.opened(kind, data), given)


def from_tree(tree: dict[str, Any], given: Model | Start | None = None) -> Streams:
    """The same from what `sealed.opened` gave."""
    kind = tree["kind"]
    try:
        chosen = settings(**tree["settings"])
        streams = Streams(chosen, _start_of(kind, chosen, tree["start"], given))
        _fill(kind, streams, tree, given)
        if not isinstance(tree["extra"], dict):
            raise ValueError("the extra data saved beside it are not a table")
    except ValueError as error:
        text = str(error)
        already = text.startswith((f"{kind} ", "state "))
        raise ValueError(
            text if already else f"{kind} is damaged: the description of its rows is not valid ({text})"
        ) from error
    except _WRONG as error:
        raise ValueError(f"{kind} is damaged: its header is not complete ({error})") from error
    return streams


def _fill(kind: str, streams: Streams, tree: dict[str, Any], given: Model | Start | None) -> None:
    outputs = tree["outputs"]
    if outputs is not None and (type(outputs) is not int or not 0 < outputs < 1 << 20):
        raise ValueError(f"outputs must be a count; got {outputs!r}")
    streams.outputs, streams.begun = outputs, tree["begun"] is True
    if tree["plan"] is not None:
        streams.share(Plan.restored(tree["plan"]), named=tree["named"] is True)
    if tree["common"] is not None:
        (streams.common,) = states_of(kind, tree["common"], given)
    _fill_series(kind, streams, tree, given)


def admit(kind: str, streams: Streams, parts: Sequence[bytes], given: Model | None) -> None:
    """Bring series back into a fleet, all of them or, where one is refused, none."""
    others = [from_bytes(kind, part, given) for part in parts]
    taken = {*streams.series}
    for other in others:
        _compare(kind, streams, other, taken)
        taken |= {*other.series}
    plans = [each.planned for each in (streams, *others) if each.begun and each.planned is not None]
    plan = reduce(Plan.together, plans) if plans else None
    for other in others:
        if not streams.begun and plan is not None:
            streams.share(plan, named=other.named)
            streams.outputs, streams.begun, streams.start = other.outputs, other.begun, other.start
            streams.common = other.common
        elif plan is not None:
            streams.share(plan, named=streams.named)
        streams.series.update({key: series.moved(streams) for key, series in other.series.items()})


def _compare(kind: str, streams: Streams, other: Streams, taken: set[SeriesKey]) -> None:
    """Refuse series that do not fit into a fleet."""
    if streams.begun and other.begun and streams.outputs != other.outputs:
        raise ValueError(f"{kind} has {other.outputs or 1} outputs, and this one has {streams.outputs or 1}")
    if other.settings != streams.settings:
        raise ValueError(f"{kind} is of other settings: {_first_difference(other.settings, streams.settings)}")
    there = [key for key in other.series if key in taken]
    if there:
        raise ValueError(f"keys to admit must not be in the fleet; {there[0]!r} is: evict it first")


def _first_difference(one: Settings, other: Settings) -> str:
    names = [field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)]
    return f"{names[0]} is {getattr(one, names[0])!r}, not {getattr(other, names[0])!r}"


def state_to_json(state: State) -> dict[str, Any]:
    """One state with its model; `states_of` takes it back."""
    return {
        "model": plain(state.model),
        "layout": asdict(state.layout),
        "records": words_of(state.record.reshape(1)),
    }


def _fill_series(kind: str, streams: Streams, tree: dict[str, Any], given: Model | Start | None) -> None:
    states, outputs = [states_of(kind, stored, given) for stored in tree["stacks"]], streams.outputs
    for key, place, stored in tree["series"]:
        if key is not None and not isinstance(key, (str, int)):
            raise ValueError(f"a key must be text or a whole number; got {key!r}")
        if key in streams.series:
            raise ValueError(f"key {key!r} is there twice")
        series, slot = Series(streams), None
        if place is not None:
            number, row = place
            state = states[number][row]
            if state.layout.outputs != outputs:
                raise ValueError("states have other outputs than the stream")
            slot = streams.stacks.admit(state.model, state.layout)
            words_of(slot.stack.records)[slot.number] = words_of(state.record.reshape(1))[0]
        series.restore(stored, slot)
        streams.series[key] = series


def states_of(kind: str, stored: dict[str, Any], given: Model | Start | None) -> list[State]:
    """States of one model, each once it is admitted."""
    layout = admission.layout_from(stored["layout"])
    if given is not None and not isinstance(given, Model):
        given = given.choose(np.zeros((0, layout.inputs)), np.zeros(0)).model
    model = model_of(kind, stored["model"], given if given is not None and plain(given) == stored["model"] else None)
    admission.believe(kind, model, layout, np.asarray(stored["records"]).nbytes)
    dtype, words = admission.record_dtype(model, layout), np.asarray(stored["records"], np.uint64)
    if words.ndim != 2 or words.shape[1] * 8 != dtype.itemsize:
        raise ValueError("states have another size than their model's")
    return [State(model, layout, row.copy().view(dtype).reshape(())) for row in words]


# ---- how series begin ------------------------------------------------------------------------------------------------


def _start_to_json(start: Start) -> dict[str, Any]:
    if isinstance(start, Default):
        return {"is": "default"}
    if isinstance(start, Given):
        return {"is": "model", "model": plain(start.model)}
    return {"is": "other"}


def _start_of(kind: str, chosen: Settings, stored: dict[str, Any], given: Model | Start | None) -> Start:
    if given is not None and not isinstance(given, Model):
        return given
    if stored["is"] == "model":
        return Given(model_of(kind, stored["model"], given))
    if stored["is"] != "default":
        raise ValueError(f"{kind} cannot be read without the model or start that it was made with: give it")
    if given is not None:
        raise ValueError(f"{kind} is of another model: of the default, not of {type(given).__name__}")
    return Default.of(chosen)
