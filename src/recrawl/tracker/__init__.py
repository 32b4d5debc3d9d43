"""The running crawler: takes from the scheduler, leases, fetches, detects, commits, learns, and tells what changed.

The only room beside `lab/simulation/` that knows scheduler and world at once, and the lowest that reads a clock, the
environment and settings.
"""
