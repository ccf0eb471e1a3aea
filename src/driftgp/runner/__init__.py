"""From rows of a table to predictions: what `driftgp run` does, without its shell."""

from driftgp.runner.lane import Answer
from driftgp.runner.run import Runner, read_checkpoint
from driftgp.runner.settings import Settings, read_config, settings_from

__all__ = ["Answer", "Runner", "Settings", "read_checkpoint", "read_config", "settings_from"]
