-- name: columns_of_table
-- The columns of one of our tables, in their order.
SELECT attname::text FROM pg_attribute
WHERE attrelid = ('recrawl.' || quote_ident($1::text))::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;

-- name: count_again
-- Count the rows of a store that was filled by other means than its statements.
INSERT INTO recrawl.row_counts (name, rows)
SELECT role || ' ' || state, count(*) FROM recrawl.pages GROUP BY 1
UNION ALL SELECT 'hosts', count(*) FROM recrawl.hosts
ON CONFLICT (name) DO UPDATE SET rows = excluded.rows;

-- name: last_number
-- The last number that a table has given to a row; 0 for none.
SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('recrawl.' || $1::text, $2::text)::regclass), 0);

-- name: set_last_number
-- Go on numbering rows after this.
SELECT setval(pg_get_serial_sequence('recrawl.' || $1::text, $2::text)::regclass, $3::bigint);
