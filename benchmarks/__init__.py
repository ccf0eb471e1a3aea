"""Speed, measured: driftgp, its rivals, what else one would pick, and the bare arithmetic, in one run on one stream."""
