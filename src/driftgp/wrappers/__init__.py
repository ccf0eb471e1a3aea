"""Models that hold a model."""

from driftgp.wrappers.bank import Bank
from driftgp.wrappers.bounded import Bounded
from driftgp.wrappers.calibrate import Calibrated
from driftgp.wrappers.gaps import Gaps
from driftgp.wrappers.guarded import Guarded
from driftgp.wrappers.standardize import Standardize
from driftgp.wrappers.watched import Watched
from driftgp.wrappers.within import Within

__all__ = ["Bank", "Bounded", "Calibrated", "Gaps", "Guarded", "Standardize", "Watched", "Within"]
