"""URLs: parse, refuse, canonicalize, and spot crawl traps."""
