"""Change rates, trust in signals, interest and rhythm: everything learned from what crawls and signals showed."""
