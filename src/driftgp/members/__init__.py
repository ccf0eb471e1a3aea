"""Small models: members of a bank, and yardsticks by themselves."""

from driftgp.members.naive import LastKMean, Persistence

__all__ = ["LastKMean", "Persistence"]
