"""Measurements of a running tracker: estimates, activity, rates over time, metrics, health."""
