"""The laboratory: worlds, policies that crawl them, measures, papers, and local webs to try a crawler on.

    worlds      laws of change, and what a world holds
    peers       rules of other crawlers, learners of other papers
    simulation  runs, measures, comparisons
    papers      experiments of papers, and the claims they are held to
    livingweb   a web on loopback that changes by a seed, and knows the truth
    demo        the tracker on a living web, against what others would do with the budget

Only the command line, the benchmarks and the warm-up import it.
"""
