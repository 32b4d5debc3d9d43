"""One module per family of solvers; each says which law its rates follow."""
