"""Durable state: what is known of pages and hosts, what was seen, what changed. SQLite and PostgreSQL.

The contract is `contract.py`, in terms of the rows of `rows.py`; `sqlite*.py` and `postgres*.py` keep it. A store
remembers and never decides: what is due is the scheduler's to say.
"""
