"""From rows of a table to predictions: what `driftgp run` does, without its shell."""

from driftgp.runner.run import Runner, read_checkpoint
from driftgp.runner.settings import Settings, read_config, settings_from
from driftgp.runner.work import Answer

__all__ = ["Answer", "Runner", "Settings", "read_checkpoint", "read_config", "settings_from"]
