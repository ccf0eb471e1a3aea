"""What a model must provide, and the records that its states and forecasts are."""
