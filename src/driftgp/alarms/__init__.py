"""Alarms with a stated rate of false ones: something has changed, what kind of change, since when, in which inputs."""

from driftgp.alarms.detectors import KINDS, Kind
from driftgp.alarms.watch import PATIENCE, Alarm, Alarms, find_alarms

__all__ = ["KINDS", "PATIENCE", "Alarm", "Alarms", "Kind", "find_alarms"]
