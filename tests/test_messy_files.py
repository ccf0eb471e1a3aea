"""Files as people have them: read right, value by value, or refused with a message that says what to do."""

import math

import numpy as np
import pytest

from driftgp.runner import Runner, settings_from
from tests.messy_files import MESSY


def read(expected, **more):
    """The samples that a run would take from a file, with the run."""
    given = {"target": expected.target, "model": "persistence", "lags": 1} | expected.options | more
    settings = settings_from(given)
    with settings.open(str(expected.path)) as rows:
        runner = Runner(settings, rows)
        samples, fault = runner._read(10_000)
        if fault is not None:
            raise fault
    return runner, samples


@pytest.mark.parametrize("name", MESSY)
def test_a_messy_file_is_read_right_or_refused_with_what_to_do(name, tmp_path):
    expected = MESSY[name](tmp_path)
    if expected.refusal:
        with pytest.raises(ValueError, match=r".") as refused:
            read(expected)
        assert expected.refusal in str(refused.value)
        assert expected.path.name in str(refused.value)
    if expected.remedy or not expected.refusal:
        check(expected, *read(expected, **expected.remedy))


def check(expected, runner, samples):
    np.testing.assert_array_equal([sample.target for sample in samples], expected.targets)
    if expected.times is not None:
        assert [sample.time for sample in samples] == expected.times
    names = [each.name for each in runner.schema.columns]
    for name, values in (expected.columns or {}).items():
        np.testing.assert_array_equal([sample.columns[names.index(name)] for sample in samples], values)
    assert expected.columns is None or set(names) == set(expected.columns)
    assert expected.note == "" or any(expected.note in note for note in runner.schema.notes)
    assert expected.left_out == "" or any(expected.left_out in column for column in runner.schema.left_out)


def test_an_hour_that_the_clocks_leave_out_is_no_gap_in_times_with_offsets(tmp_path):
    _, samples = read(MESSY["clocks_that_go_forward"](tmp_path))
    assert set(np.diff([sample.at for sample in samples])) == {3600.0}
    assert not any(math.isnan(sample.at) for sample in samples)
