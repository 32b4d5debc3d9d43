"""Change rates, trust in signals and interest in new pages, learned from crawls.

The running tracker and the scheduler use:

    grid             the grid of rates, its likelihood table, the prior, summaries of a distribution
    filter_state     40 bytes per page that hold what its crawls have shown
    filter           kernels that update the state and read beliefs from it
    online_filter    `OnlineFilter`: the filter for callers without arrays of their own
    population       the prior of a running crawler, fitted to the states of its pages
    trust            trust in signals, its errors, and the fit to histories
    trust_tracker    `TrustTracker`: trust in bounded memory, audit by audit
    hazard_fit       the concave likelihood behind both
    interest         profit and decay of new pages; new_links: how often a source shows them
    inputs           checks of what callers hand in

The library for whole histories adds:

    histories        `Histories`, `CrawlLog` and the intervals between crawls
    signal_history   `SignalHistories`: crawls with the signals between them
    prior            `fit_prior`: the prior of a population and of its hosts
    posterior        the rates of pages, given prior and crawls
    rates            classical estimators, page by page
    rhythm           hours and days at which a host changes
    hit_histograms   hits by age of page, in bounded memory
"""
