"""What all models share: `init`, `predict` and `update`, the check of states from outside, and limits of forecasts."""
