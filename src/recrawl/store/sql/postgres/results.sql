-- name: end_leases
-- End the leases of results; those that come back were good.
DELETE FROM recrawl.leases AS l
USING unnest($1::bigint[], $2::bigint[]) AS w (page_id, token)
WHERE l.page_id = w.page_id AND l.token = w.token
RETURNING l.page_id, l.token;

-- name: settled_tokens
-- Which results were written before: their observation is there, or was the last of its page.
SELECT w.page_id, w.token
FROM unnest($1::bigint[], $2::bigint[]) AS w (page_id, token)
WHERE w.token > 0 AND (
    EXISTS (SELECT FROM recrawl.observations AS o WHERE o.token = w.token AND o.page_id = w.page_id)
    OR EXISTS (SELECT FROM recrawl.pages AS p WHERE p.id = w.page_id AND p.settled_token = w.token));

-- name: token_seen
-- Whether a result was written under a token.
SELECT 1 FROM recrawl.observations WHERE token = $1;

-- name: settle_pages
-- Write pages as results leave them, from the desk of the session; what users decide stays as it is.
-- What was heard of them before their fetch began is answered; that of one without a verdict began never.
-- Pages that move to another state are counted there.
WITH answered AS (
    DELETE FROM recrawl.signals AS s USING pg_temp.settled_pages AS w
    WHERE s.page_id = w.id AND s.last_at <= w.began_at
), moved AS (
    SELECT p.role, p.state AS before, w.state AS after
    FROM pg_temp.settled_pages AS w JOIN recrawl.pages AS p ON p.id = w.id WHERE p.state <> w.state
), counted AS (
    INSERT INTO recrawl.row_counts AS c (name, rows)
    SELECT name, sum(moves) FROM (
        SELECT role || ' ' || after AS name, 1 AS moves FROM moved
        UNION ALL SELECT role || ' ' || before, -1 FROM moved
    ) AS m GROUP BY name HAVING sum(moves) <> 0
    ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows
)
UPDATE recrawl.pages AS p
SET state = w.state, reason = w.reason, attempted_at = w.attempted_at, fetched_at = w.fetched_at,
    changed_at = w.changed_at, outcome = w.outcome, failures = w.failures, not_before = w.not_before,
    missing = w.missing, missing_since = w.missing_since, crashes = w.crashes, etag = w.etag,
    last_modified = w.last_modified, validated_url = w.validated_url, raw_digest = w.raw_digest,
    text_digest = w.text_digest, links_digest = w.links_digest, metadata_digest = w.metadata_digest,
    memory = w.memory, belief = w.belief, visits = w.visits, changes = w.changes, version = w.version,
    last_token = w.token, settled_token = w.token
FROM pg_temp.settled_pages AS w
WHERE p.id = w.id;

-- name: end_signals_of
-- End signals of kinds that results answer whatever came.
DELETE FROM recrawl.signals AS s USING unnest($1::bigint[], $2::float8[], $3::text[]) AS w (id, began_at, kind)
WHERE s.page_id = w.id AND s.last_at <= w.began_at AND s.kind = w.kind;

-- name: add_versions
-- Keep the texts of versions that are published.
INSERT INTO recrawl.versions (page_id, version, at, digest, text, body_digest)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::bytea[], $5::bytea[], $6::bytea[])
ON CONFLICT (page_id, version) DO UPDATE
SET at = excluded.at, digest = excluded.digest, text = excluded.text, body_digest = excluded.body_digest;

-- name: save_hosts
-- Write hosts, and count new ones; what is NULL of robots and of what was learned is left as it is.
WITH saved AS (
INSERT INTO recrawl.hosts (name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until,
    learned)
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
INSERT INTO recrawl.row_counts AS c (name, rows)
SELECT 'hosts', count(*) FROM saved WHERE is_new HAVING count(*) > 0
ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows;

-- name: raise_tallies
-- Raise counters by name.
INSERT INTO recrawl.tallies (name, value) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET value = tallies.value + excluded.value;

-- name: append_changes
-- Append events to the log, with the cursors that the ledger gives.
INSERT INTO recrawl.changes (cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest,
    trigger, detail, token)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::text[], $5::bigint[], $6::float8[], $7::bytea[],
    $8::bytea[], $9::text[], $10::text[], $11::bigint[]);
