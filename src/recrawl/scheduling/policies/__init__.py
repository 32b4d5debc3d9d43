"""Policies: what to crawl next. `registry.py` lists them by name; each other file is one policy or family."""
