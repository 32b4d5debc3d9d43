-- name: ledger_create
-- The one row of a new store.
INSERT INTO ledger (one, store_id, generation, owner, last_token, last_observation, observations)
VALUES (1, ?1, 0, '', 0, 0, 0);

-- name: ledger_identity
-- What tells this store from others, and who owns it.
SELECT store_id, generation, owner FROM ledger;

-- name: ledger_take_over
-- A new owner: a number that no earlier one had.
UPDATE ledger SET generation = generation + 1, owner = ?1 RETURNING generation;

-- name: take_tokens
-- So many tokens for leases; the first of them.
UPDATE ledger SET last_token = last_token + ?1 RETURNING last_token - ?1 + 1;

-- name: take_observations
-- Numbers for so many observations; the first of them.
UPDATE ledger SET last_observation = last_observation + ?1, observations = observations + ?1
RETURNING last_observation - ?1 + 1;

-- name: take_cursors
-- The cursor after the last: rows are never deleted and only one connection writes.
SELECT coalesce(max(cursor), 0) + 1 FROM changes;

-- name: take_page_ids
-- The id after the last: pages are never deleted.
SELECT coalesce(max(id), 0) + 1 FROM pages;

-- name: name_find
-- The number of a name.
SELECT id FROM names WHERE name = ?1;

-- name: name_add
-- A number for a name that has none.
INSERT INTO names (name) VALUES (?1) RETURNING id;

-- name: names_of
-- The text of a name.
SELECT id, name FROM names WHERE id = ?1;

-- name: hosts_all
-- What is known of hosts.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM hosts LEFT JOIN host_notes USING (name);

-- name: hosts_named
-- Some hosts by name.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM hosts LEFT JOIN host_notes USING (name) WHERE name IN (SELECT value FROM json_each(?1));

-- name: hosts_after
-- A stretch of hosts by name, without what is large.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL, robots_until
FROM hosts WHERE name > ?1 ORDER BY name LIMIT ?2;

-- name: hosts_troubled
-- Hosts that fail, are degraded, or are left alone for a while after a time.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL, robots_until
FROM hosts WHERE degraded_since IS NOT NULL OR failures > 0 OR blocked_until > ?1;

-- name: host_save
-- What changes with every request.
-- takes: name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots_until
INSERT INTO hosts (name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name) DO UPDATE SET min_gap_s = ?2, next_at = ?3, blocked_until = ?4, failures = ?5, degraded_since = ?6,
    robots_until = coalesce(?7, robots_until);

-- name: host_save_notes
-- What is large and seldom changes: written only when it differs.
-- takes: name, robots, learned
INSERT INTO host_notes (name, robots, learned) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET robots = coalesce(?2, robots), learned = coalesce(?3, learned)
WHERE robots IS NOT coalesce(?2, robots) OR learned IS NOT coalesce(?3, learned);

-- name: fact_save
-- A small fact.
INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2;

-- name: orders_waiting
-- The oldest first.
SELECT id, kind, payload, posted_at FROM orders WHERE answered_at IS NULL ORDER BY id LIMIT ?1;

-- name: count_rows
-- Hosts, and pages by role and state, as they were counted. Pages are never deleted: their ids count the active ones.
SELECT name, rows FROM row_counts
UNION ALL SELECT 'page active', (SELECT coalesce(max(id), 0) FROM pages)
    - (SELECT sum(rows) FROM row_counts WHERE name <> 'hosts');

-- name: count_paused
-- Active pages that are paused by themselves, their group or their host.
SELECT count(*) FROM pages WHERE state = 'active' AND source_only = 0 AND id IN (
    SELECT id FROM pages WHERE host IN (SELECT names.id FROM pauses JOIN names USING (name) WHERE kind = 'host')
    UNION
    SELECT id FROM pages WHERE in_group IN (SELECT names.id FROM pauses JOIN names USING (name) WHERE kind = 'group')
    UNION
    SELECT value FROM json_each(?1));

-- name: rows_counted
-- Count new rows; those of active pages are the rest, and are not counted.
UPDATE row_counts SET rows = rows + ?2 WHERE name = ?1;

-- name: bodies_named
-- Bodies that versions name.
SELECT DISTINCT body_digest FROM versions WHERE body_digest IS NOT NULL;

-- name: body_named
-- Whether a version names a body.
SELECT 1 FROM versions WHERE body_digest = ?1 LIMIT 1;

-- name: packed_create
-- In a backup, bodies travel inside the file.
CREATE TABLE packed_bodies (digest BLOB PRIMARY KEY, packed BLOB NOT NULL) STRICT;

-- name: packed_add
-- A body, compressed as its file is.
INSERT INTO packed_bodies (digest, packed) VALUES (?1, ?2);

-- name: packed_all
-- The bodies of a backup.
SELECT digest, packed FROM packed_bodies;

-- name: packed_drop
-- A store keeps bodies as files.
DROP TABLE packed_bodies;

-- name: check_integrity
-- SQLite's own look at every page of the file.
PRAGMA integrity_check(20);

-- name: check_page_addresses
-- Addresses and pages go in pairs, and none is ever deleted: as many of each are missing as there are ids without one.
SELECT 2 * max((SELECT coalesce(max(id), 0) FROM pages), (SELECT coalesce(max(id), 0) FROM addresses))
    - (SELECT count(*) FROM pages) - (SELECT count(*) FROM addresses);

-- name: check_page_hosts
-- Pages whose host has no name.
SELECT count(*) FROM pages WHERE NOT EXISTS (SELECT 1 FROM names WHERE names.id = pages.host);

-- name: check_cursors
-- Cursors that are missing from the log.
SELECT coalesce(max(cursor), 0) - count(*) FROM changes WHERE cursor > 0;

-- name: check_cursors_beyond
-- Events before the first cursor.
SELECT count(*) FROM changes WHERE cursor < 1;

-- name: check_observation_numbers
-- Observations whose number was never given out.
SELECT count(*) FROM observations WHERE number > (SELECT last_observation FROM ledger);

-- name: check_version_bodies
-- Nothing: bodies are files, which are looked at beside the database.
-- skipped

-- name: check_counts
-- How many rows are counted wrong.
SELECT ifnull(sum(abs(row_counts.rows - ifnull(found.rows, 0))), 0) FROM row_counts LEFT JOIN (
    SELECT iif(source_only, 'source ', 'page ') || state AS name, count(*) AS rows FROM pages
    WHERE state <> 'active' OR source_only = 1 GROUP BY 1
    UNION ALL SELECT 'hosts', count(*) FROM hosts) AS found USING (name);

-- name: check_source_memories
-- What is remembered of sources that are none.
SELECT count(*) FROM source_memories WHERE page_id NOT IN (SELECT page_id FROM sources);

-- name: check_sinks
-- Sinks that have taken more than there is.
SELECT count(*) FROM sinks WHERE cursor > (SELECT coalesce(max(cursor), 0) FROM changes);
