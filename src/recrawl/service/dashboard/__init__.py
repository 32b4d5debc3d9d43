"""Pages for people: what the tracker does, how fresh the copies are, what changed and why. Only reads."""
