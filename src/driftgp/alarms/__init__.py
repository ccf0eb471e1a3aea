"""Alarms with a stated rate of false alarms: what has changed, since when, and in which inputs."""

from driftgp.alarms.detectors import KINDS, Kind
from driftgp.alarms.watch import PATIENCE, Alarm, Alarms, find_alarms

__all__ = ["KINDS", "PATIENCE", "Alarm", "Alarms", "Kind", "find_alarms"]
