"""The way of a visit: dispatch, fetch, examine, decide, complete, commit."""
