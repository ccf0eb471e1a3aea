"""Models that hold a model."""

from driftgp.wrappers.around import Around
from driftgp.wrappers.bank import Bank
from driftgp.wrappers.bounded import Bounded
from driftgp.wrappers.calibrate import Calibrated
from driftgp.wrappers.credible import Credible
from driftgp.wrappers.gaps import Gaps
from driftgp.wrappers.guarded import Guarded
from driftgp.wrappers.standardize import Standardize
from driftgp.wrappers.watched import Watched
from driftgp.wrappers.within import Within

__all__ = [
    "Around",
    "Bank",
    "Bounded",
    "Calibrated",
    "Credible",
    "Gaps",
    "Guarded",
    "Standardize",
    "Watched",
    "Within",
]
