"""The scheduler: sells the crawl budget to the pages that are worth most, one price for all of them.

`scheduler.py` is the way in. It checks what enters, keeps ids and limits, and leaves the choice of pages to a policy
(`policies/contract.py` is the contract, `policies/` has one file for each). Nothing here reads a clock or does IO but
`snapshot.py`.
"""
