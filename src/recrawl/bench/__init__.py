"""Measures against yardsticks, one module per group."""
