"""The drivers of both databases, whose connections visit the database as seldom as they can.

They use what aiosqlite and psycopg do not document, which alone this package may; `pyproject.toml`
bounds the versions of both, and `tests/app/test_drivers.py` names what has changed.
"""
