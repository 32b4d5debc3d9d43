"""Compare two fetches of a page: digests, diffs, and what of it is noise."""
