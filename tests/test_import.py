"""What `import driftgp` brings, and what it leaves for later."""

import subprocess
import sys

import pytest

import driftgp


def test_names_are_there_without_the_weight_of_jax():
    program = "import sys, driftgp; print('jax' in sys.modules, driftgp.AGP.__name__, 'jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "AGP", "True"]


def test_every_name_is_listed_and_found():
    assert set(driftgp.__all__) <= set(dir(driftgp))
    for name in driftgp.__all__:
        assert getattr(driftgp, name).__name__ == name


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(AttributeError, match="no attribute 'GP'; it has AGP, FastAGP, Online, prequential"):
        _ = driftgp.GP  # type: ignore[attr-defined]
