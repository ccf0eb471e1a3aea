"""Small models: members of a bank, and baselines for comparison."""

from driftgp.members.anchored import Anchored
from driftgp.members.lagged import Lagged
from driftgp.members.naive import LastKMean, Persistence

__all__ = ["Anchored", "Lagged", "LastKMean", "Persistence"]
