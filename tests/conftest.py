"""What tests of several rooms share."""

import pytest

from driftgp import AGP
from driftgp.engine import describe


@pytest.fixture(params=["native", "reference"])
def each_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both engines, one after the other."""
    engine = str(request.param)
    if engine == "native" and not describe(AGP()).startswith("native"):
        pytest.skip(f"there is no compiled engine here ({describe(AGP())})")
    monkeypatch.setenv("DRIFTGP_ENGINE", engine)
    return engine


@pytest.fixture
def by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models as they run where there is no compiled engine."""
    monkeypatch.setenv("DRIFTGP_ENGINE", "reference")
