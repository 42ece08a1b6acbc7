"""Deletes the rows of test databases between tests."""

import psycopg

_DELETE_ROWS = """
DO $$ DECLARE place regclass; BEGIN
  -- Without the triggers of foreign keys, no order of the tables matters.
  SET LOCAL session_replication_role = replica;
  FOR place IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace
    AND relkind = 'r' AND relname <> 'alembic_version'
  LOOP
    -- A new file for each table takes longest, but deleted rows stay in theirs.
    IF pg_relation_size(place) > 1000000 THEN EXECUTE format('TRUNCATE %s CASCADE', place);
    ELSE EXECUTE format('DELETE FROM %s', place);
    END IF;
  END LOOP;
  PERFORM setval(format('%I', sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE last_value IS NOT NULL;
END $$
"""


def delete_rows(url: str) -> None:
    """Deletes all rows of a PostgreSQL database and restarts its sequences."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_DELETE_ROWS)
