"""Worlds by law, one idea per file."""
