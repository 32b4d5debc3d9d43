"""The experiments of the papers recrawl stands on, run again: one module for each paper, claims fixed beforehand."""
