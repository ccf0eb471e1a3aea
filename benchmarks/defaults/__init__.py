"""The default model measured on streams that nobody tuned it for: `python -m benchmarks.defaults`."""
