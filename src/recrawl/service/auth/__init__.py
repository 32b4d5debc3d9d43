"""Who may do what: tokens, sessions, rate limits, and the guard of every route."""
