-- name: enter_as_owner
-- Lock the ledger for this transaction if we are still the owner; no row if we are not.
SELECT last_token, last_cursor, observations FROM recrawl.ledger WHERE generation = $1 FOR UPDATE;

-- name: make_desk
-- A table of this session alone, where rows of results are laid out before they are written to pages.
CREATE TEMPORARY TABLE settled_pages ON COMMIT DELETE ROWS AS
SELECT id, last_token AS token, attempted_at AS began_at, state, reason, attempted_at, fetched_at, changed_at, outcome,
    failures, not_before,
    missing, missing_since, crashes, etag, last_modified, validated_url, raw_digest, text_digest, links_digest,
    metadata_digest, memory, belief, visits, changes, version
FROM recrawl.pages WITH NO DATA;

-- name: current_generation
-- Who is the owner now.
SELECT generation FROM recrawl.ledger;

-- name: next_generation
-- Become the owner: waits for a transaction under way, and shuts out all later ones of owners before.
UPDATE recrawl.ledger SET generation = generation + 1 RETURNING generation;

-- name: read_ledger
-- Which store this is, and how far it has come.
SELECT store_id, generation, last_token, last_cursor FROM recrawl.ledger;

-- name: make_ledger
-- Give a new store its identity.
INSERT INTO recrawl.ledger (store_id) VALUES ($1);

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
SELECT coalesce(max(version), 0) FROM recrawl.schema_version;

-- name: note_version
-- A migration was applied.
INSERT INTO recrawl.schema_version (version) VALUES ($1);

-- name: lock_schema
-- One at a time makes or changes the tables; until the transaction ends.
SELECT pg_advisory_xact_lock($1::integer, 2);
