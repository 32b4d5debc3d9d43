"""Values of pages whose changes are announced by signals, with misses and false alarms.

    page            a page and its signals, in the numbers that the formulas need
    freshness       binary freshness: cycles, value and due time
    harmonic_cost   expected harmonic cost, and where it reaches a threshold
    harmonic        harmonic staleness: cycles, value and due time
    table           the same from a table, for hot paths
    planning        crawl rate for a value, value and costs for a crawl rate, for both
    kinds           binary freshness with several kinds of signals

The planners and the scheduler call the kernels of these modules; `recrawl.values` has functions over arrays.
"""
