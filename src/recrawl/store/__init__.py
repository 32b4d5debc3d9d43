"""Durable state: what is known of pages and hosts, what was seen, what changed. SQLite and PostgreSQL.

`store.py` has the class `Store` and what it promises. Its operations are written once, as steps without IO
(`steps.py`), in terms of the rows of `rows.py`; the packages `sqlite` and `postgres` drive them. A store remembers and
never decides: what is due is the scheduler's to say.
"""
