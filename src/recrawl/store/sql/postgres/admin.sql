-- name: enter_as_owner
-- Lock the ledger for this transaction if we are still the owner; no row if we are not.
SELECT last_token, last_cursor, observations FROM ledger WHERE generation = $1 FOR UPDATE;

-- name: make_staging
-- A table of this session alone, where rows of results are laid out before they are written to pages.
CREATE TEMPORARY TABLE settled_pages ON COMMIT DELETE ROWS AS
SELECT last_token AS token, attempted_at AS began_at, id, state, reason, attempted_at, fetched_at, changed_at, outcome,
    failures, not_before,
    missing, missing_since, crashes, etag, last_modified, validated_url, raw_digest, text_digest, links_digest,
    metadata_digest, memory, belief, visits, changes, version
FROM recrawl.pages WITH NO DATA;

-- name: next_generation
-- Become the owner: waits for a transaction under way, and shuts out all later ones of owners before.
UPDATE ledger SET generation = generation + 1 RETURNING generation;

-- name: read_ledger
-- Which store this is, and how far it has come.
SELECT store_id, generation, last_token, last_cursor FROM ledger;

-- name: make_ledger
-- Give a new store its identity.
INSERT INTO ledger (store_id) VALUES ($1);

-- name: try_owner_lock
-- The lock of the owner, held by the session.
SELECT pg_try_advisory_lock($1::integer, $2::integer);

-- name: who_owns
-- The session that holds the lock of the owner, and what it does.
SELECT a.pid, a.application_name, a.state, a.query_start
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = $1::integer AND l.objid::bigint = $2::integer AND l.objsubid = 2;

-- name: end_old_session
-- End our own earlier session, known by its name, if it still holds the lock of the owner.
SELECT pg_terminate_backend(a.pid)
FROM pg_locks AS l JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND l.classid::bigint = $1::integer AND l.objid::bigint = $2::integer AND l.objsubid = 2
    AND a.application_name = $3 AND a.pid <> pg_backend_pid();

-- name: find_tables
-- Whether the schema, its table of versions and any other table are there.
SELECT to_regnamespace('recrawl') IS NOT NULL AS has_schema,
    to_regclass('recrawl.schema_version') IS NOT NULL AS has_version,
    EXISTS (SELECT FROM pg_tables WHERE schemaname = 'recrawl') AS has_tables,
    current_setting('server_encoding') AS encoding;

-- name: schema_version
-- The number of the last migration.
SELECT coalesce(max(version), 0) FROM schema_version;

-- name: note_version
-- A migration was applied.
INSERT INTO schema_version (version) VALUES ($1);

-- name: lock_schema
-- One at a time makes or changes the tables; until the transaction ends.
SELECT pg_advisory_xact_lock($1::integer, 2);

-- name: columns_of_table
-- The columns of one of our tables, in their order.
SELECT attname::text FROM pg_attribute
WHERE attrelid = ('recrawl.' || quote_ident($1::text))::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;

-- name: count_again
-- Count the rows of a store that was filled by other means than its statements.
INSERT INTO row_counts (name, rows)
SELECT role || ' ' || state, count(*) FROM pages GROUP BY 1
UNION ALL SELECT 'hosts', count(*) FROM hosts
ON CONFLICT (name) DO UPDATE SET rows = excluded.rows;

-- name: last_number
-- The last number that a table has given to a row; 0 for none.
SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('recrawl.' || $1::text, $2::text)::regclass), 0);

-- name: set_last_number
-- Go on numbering rows after this.
SELECT setval(pg_get_serial_sequence('recrawl.' || $1::text, $2::text)::regclass, $3::bigint);

-- name: take_page_ids
-- Ids for so many pages; the first of them. Only the owner adds pages, so they follow each other.
SELECT min(nextval(pg_get_serial_sequence('recrawl.pages', 'id'))) FROM generate_series(1, $1::bigint);

-- name: hosts_all
-- All hosts.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned FROM hosts;

-- name: hosts_named
-- Some hosts by name.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM hosts WHERE name = ANY($1::text[]);

-- name: hosts_after
-- A stretch of hosts by name, without what is large.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL::bytea, robots_until
FROM hosts WHERE name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2;

-- name: hosts_troubled
-- Hosts that fail, are degraded, or are left alone for a while after a time.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL::bytea, robots_until
FROM hosts WHERE degraded_since IS NOT NULL OR failures > 0 OR blocked_until > $1;

-- name: host_save
-- Write hosts, and count new ones; what is NULL of robots and of what was learned is left as it is.
-- takes: name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
WITH saved AS (
INSERT INTO hosts (name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned)
SELECT * FROM unnest($1::text[], $2::float8[], $3::float8[], $4::float8[], $5::bigint[], $6::float8[], $7::bytea[],
    $8::float8[], $9::bytea[])
ON CONFLICT (name) DO UPDATE
SET min_gap_s = excluded.min_gap_s, next_at = excluded.next_at, blocked_until = excluded.blocked_until,
    failures = excluded.failures, degraded_since = excluded.degraded_since,
    robots = coalesce(excluded.robots, hosts.robots),
    robots_until = coalesce(excluded.robots_until, hosts.robots_until),
    learned = coalesce(excluded.learned, hosts.learned)
RETURNING xmax = 0 AS is_new
)
INSERT INTO row_counts AS c (name, rows)
SELECT 'hosts', count(*) FROM saved WHERE is_new HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows;

-- name: host_save_notes
-- Nothing: `host_save` writes them.
-- skipped

-- name: fact_save
-- Write facts.
INSERT INTO facts (name, value) SELECT * FROM unnest($1::text[], $2::text[])
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: orders_waiting
-- Orders that wait, the oldest first.
SELECT id, kind, payload, posted_at FROM orders WHERE reply IS NULL ORDER BY id LIMIT $1;

-- name: count_rows
-- Hosts, and pages by role and state, as they were counted.
SELECT name, rows FROM row_counts;

-- name: count_paused
-- Active pages that are paused by themselves, their group or their host.
SELECT count(*) FROM (
    SELECT p.id FROM pauses AS u JOIN pages AS p ON p.group_name = u.name
    WHERE u.kind = 'group' AND p.state = 'active' AND p.role = 'page'
    UNION
    SELECT p.id FROM pauses AS u JOIN host_names AS h ON h.name = u.name
    JOIN pages AS p ON p.host_no = h.no
    WHERE u.kind = 'host' AND p.state = 'active' AND p.role = 'page'
    UNION
    SELECT p.id FROM pages AS p WHERE p.id = ANY($1::bigint[]) AND p.state = 'active' AND p.role = 'page'
) AS paused;

-- name: rows_counted
-- Count new rows.
INSERT INTO row_counts AS c (name, rows) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows;

-- name: check_page_addresses
-- Nothing: a page and its address are one row.
-- skipped

-- name: check_page_hosts
-- Pages whose host has no name.
SELECT count(*) FROM pages AS p WHERE NOT EXISTS (SELECT FROM host_names AS h WHERE h.no = p.host_no);

-- name: check_cursors
-- Cursors that are missing from the log.
SELECT l.last_cursor - (SELECT count(*) FROM changes WHERE cursor BETWEEN 1 AND l.last_cursor)
FROM ledger AS l;

-- name: check_cursors_beyond
-- Events before the first cursor or beyond the end of the log.
SELECT count(*) FROM changes WHERE cursor < 1 OR cursor > (SELECT last_cursor FROM ledger);

-- name: check_observation_numbers
-- Nothing: the server numbers observations.
-- skipped

-- name: check_version_bodies
-- Versions whose body is not kept.
SELECT count(*) FROM versions AS v
WHERE v.body_digest IS NOT NULL AND NOT EXISTS (SELECT FROM bodies AS b WHERE b.digest = v.body_digest);

-- name: bodies_after
-- A few bodies above a digest, to look at.
SELECT digest, body FROM bodies WHERE digest > $1 ORDER BY digest LIMIT $2;

-- name: check_counts
-- How many rows are counted wrong.
SELECT coalesce(sum(abs(coalesce(c.rows, 0) - coalesce(found.rows, 0))), 0)::bigint
FROM row_counts AS c FULL JOIN (
    SELECT role || ' ' || state AS name, count(*) AS rows FROM pages GROUP BY 1
    UNION ALL SELECT 'hosts', count(*) FROM hosts
) AS found ON found.name = c.name;

-- name: check_source_memories
-- Nothing: a source and its memory are one row.
-- skipped

-- name: check_sinks
-- Sinks that have taken more than there is.
SELECT count(*) FROM sinks WHERE cursor > (SELECT last_cursor FROM ledger);

-- name: body_put
-- Keep a body; the same one is left as it is, a damaged one is replaced.
INSERT INTO bodies (digest, body) VALUES ($1, $2)
ON CONFLICT (digest) DO UPDATE SET body = excluded.body WHERE bodies.body <> excluded.body;

-- name: body_read
-- A body, compressed.
SELECT body FROM bodies WHERE digest = $1;

-- name: bodies_swept
-- Of the next few bodies delete those that no version names and no result under way is about to name; the last of them.
WITH looked_at AS MATERIALIZED (
    SELECT digest FROM bodies WHERE digest > $2 ORDER BY digest LIMIT $3
), deleted AS (
    DELETE FROM bodies AS b USING looked_at AS l
    WHERE b.digest = l.digest AND b.digest <> ALL($1::bytea[])
        AND NOT EXISTS (SELECT FROM versions AS v WHERE v.body_digest = b.digest)
)
SELECT digest FROM looked_at ORDER BY digest DESC LIMIT 1;
