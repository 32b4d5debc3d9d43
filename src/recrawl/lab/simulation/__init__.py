"""The laboratory: worlds with a known truth, competitors that see what a crawler sees, measures of their crawls."""
