"""Pictures: of runs, of comparisons and of forecasts."""
