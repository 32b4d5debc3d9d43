"""Figures drawn with matplotlib, from plain arrays; one place saves them."""
