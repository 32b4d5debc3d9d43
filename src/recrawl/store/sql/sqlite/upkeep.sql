-- name: hosts_all
-- What is known of hosts.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM hosts LEFT JOIN host_notes USING (name) ORDER BY name;

-- name: hosts_named
-- Some hosts by name.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM hosts LEFT JOIN host_notes USING (name) WHERE name IN (SELECT value FROM json_each(?1)) ORDER BY name;

-- name: hosts_after
-- A stretch of hosts by name, without what is large.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL, robots_until
FROM hosts WHERE name > ?1 ORDER BY name LIMIT ?2;

-- name: hosts_troubled
-- Hosts that fail, are degraded, or are left alone for a while after a time.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL, robots_until
FROM hosts WHERE degraded_since IS NOT NULL OR failures > 0 OR blocked_until > ?1 ORDER BY name;

-- name: host_save
-- What changes with every request.
INSERT INTO hosts (name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (name) DO UPDATE SET min_gap_s = ?2, next_at = ?3, blocked_until = ?4, failures = ?5, degraded_since = ?6,
    robots_until = coalesce(?7, robots_until);

-- name: host_save_notes
-- What is large and seldom changes: written only when it differs.
INSERT INTO host_notes (name, robots, learned) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET robots = coalesce(?2, robots), learned = coalesce(?3, learned)
WHERE robots IS NOT coalesce(?2, robots) OR learned IS NOT coalesce(?3, learned);

-- name: facts_all
-- Small facts.
SELECT name, value FROM facts ORDER BY name;

-- name: fact_save
-- A small fact.
INSERT INTO facts (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = ?2;

-- name: order_post
-- A command leaves an order.
INSERT INTO orders (kind, payload, posted_at) VALUES (?1, ?2, ?3) RETURNING id;

-- name: orders_waiting
-- The oldest first.
SELECT id, kind, payload, posted_at FROM orders WHERE answered_at IS NULL ORDER BY id LIMIT ?1;

-- name: order_answer
-- What became of an order.
UPDATE orders SET reply = ?2, answered_at = ?3 WHERE id = ?1;

-- name: orders_forget
-- Nobody waits for an answer that long.
DELETE FROM orders WHERE answered_at < ?1;

-- name: order_reply
-- The answer to an order, NULL while there is none.
SELECT reply FROM orders WHERE id = ?1;

-- name: count_rows
-- Hosts, and pages by role and state but for active pages, as they were counted.
SELECT name, rows FROM row_counts;

-- name: count_paused
-- Active pages that are paused by themselves, their group or their host.
SELECT count(*) FROM pages WHERE state = 'active' AND source_only = 0 AND id IN (
    SELECT id FROM pages WHERE host IN (SELECT names.id FROM pauses JOIN names USING (name) WHERE kind = 'host')
    UNION
    SELECT id FROM pages WHERE in_group IN (SELECT names.id FROM pauses JOIN names USING (name) WHERE kind = 'group')
    UNION
    SELECT value FROM json_each(?1));

-- name: count_rest
-- Leases, observations, the last cursor, sources that are active.
SELECT (SELECT count(*) FROM leases), (SELECT observations FROM ledger), (SELECT ifnull(max(cursor), 0) FROM changes),
    (SELECT count(*) FROM sources WHERE state = 'active');

-- name: bodies_named
-- Bodies that versions name.
SELECT DISTINCT body_digest FROM versions WHERE body_digest IS NOT NULL;

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

-- name: check_log
-- A log without gaps ends where it has as many events.
SELECT count(*), ifnull(max(cursor), 0) FROM changes;

-- name: check_pages
-- Addresses and pages go in pairs, and none is ever deleted.
SELECT (SELECT count(*) FROM pages), (SELECT count(*) FROM addresses), (SELECT ifnull(max(id), 0) FROM pages);

-- name: check_counts
-- How many rows are counted wrong.
SELECT ifnull(sum(abs(row_counts.rows - ifnull(found.rows, 0))), 0) FROM row_counts LEFT JOIN (
    SELECT iif(source_only, 'source ', 'page ') || state AS name, count(*) AS rows FROM pages
    WHERE state <> 'active' OR source_only = 1 GROUP BY 1
    UNION ALL SELECT 'hosts', count(*) FROM hosts) AS found USING (name);

-- name: check_leases
-- Leases of pages that are retired or unknown, or with tokens that were never given out.
SELECT count(*) FROM leases LEFT JOIN pages ON pages.id = leases.page_id
WHERE pages.id IS NULL OR pages.state = 'retired' OR leases.token > (SELECT last_token FROM ledger)
    OR leases.token <= pages.settled_token;

-- name: check_tokens
-- Pages whose tokens were never given out.
SELECT count(*) FROM pages WHERE max(last_token, settled_token) > (SELECT last_token FROM ledger)
    OR settled_token > last_token;

-- name: check_observations
-- How many there are, how many were counted, and how far their numbers go.
SELECT (SELECT count(*) FROM observations), ledger.observations,
    (SELECT ifnull(max(number), 0) FROM observations) <= ledger.last_observation FROM ledger;

-- name: check_twice
-- Results that were written twice.
SELECT count(*) FROM (SELECT token FROM observations GROUP BY token HAVING count(*) > 1);

-- name: check_strangers
-- Observations, versions, events and sources of pages that are unknown.
SELECT (SELECT count(*) FROM observations WHERE page_id NOT IN (SELECT id FROM pages))
    + (SELECT count(*) FROM versions WHERE page_id NOT IN (SELECT id FROM pages))
    + (SELECT count(*) FROM changes WHERE page_id IS NOT NULL AND page_id NOT IN (SELECT id FROM pages))
    + (SELECT count(*) FROM sources WHERE page_id NOT IN (SELECT id FROM pages));

-- name: check_sources
-- What is remembered of sources that are none.
SELECT count(*) FROM source_memories WHERE page_id NOT IN (SELECT page_id FROM sources);
