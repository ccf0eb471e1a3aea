"""From rows of a table to predictions: what `driftgp run` does, without its shell."""

from driftgp.runs.run import Answers, Run, Saved, read_checkpoint
from driftgp.runs.settings import RunSettings, read_config, settings_from

__all__ = ["Answers", "Run", "RunSettings", "Saved", "read_checkpoint", "read_config", "settings_from"]
