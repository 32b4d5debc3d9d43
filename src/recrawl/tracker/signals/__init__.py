"""Signals: what is heard of pages between crawls, how far each kind can be trusted, and what the scheduler is told."""
