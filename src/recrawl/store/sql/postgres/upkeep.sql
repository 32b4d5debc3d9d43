-- name: hosts
-- All hosts.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM recrawl.hosts ORDER BY name;

-- name: read_hosts
-- Some hosts by name.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM recrawl.hosts WHERE name = ANY($1::text[]) ORDER BY name;

-- name: list_hosts
-- A stretch of hosts by name, without what is large.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL::bytea, robots_until
FROM recrawl.hosts WHERE name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2;

-- name: troubled_hosts
-- Hosts that fail, are degraded, or are left alone for a while after a time.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, NULL::bytea, robots_until
FROM recrawl.hosts WHERE degraded_since IS NOT NULL OR failures > 0 OR blocked_until > $1 ORDER BY name;

-- name: facts
-- Small facts by name.
SELECT name, value FROM recrawl.facts ORDER BY name;

-- name: save_facts
-- Write facts.
INSERT INTO recrawl.facts (name, value) SELECT * FROM unnest($1::text[], $2::text[])
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: post
-- Leave an order for the owner.
INSERT INTO recrawl.orders (kind, payload, posted_at) VALUES ($1, $2, $3) RETURNING id;

-- name: orders
-- Orders that wait, the oldest first.
SELECT id, kind, payload, posted_at FROM recrawl.orders WHERE reply IS NULL ORDER BY id LIMIT $1;

-- name: answer
-- Answer an order.
UPDATE recrawl.orders SET reply = $2, answered_at = $3 WHERE id = $1;

-- name: forget_orders
-- Nobody waits that long for an answer.
DELETE FROM recrawl.orders WHERE answered_at < $1;

-- name: reply_to
-- The answer to an order.
SELECT reply FROM recrawl.orders WHERE id = $1;

-- name: count_rows
-- Hosts, and pages by role and state, as they were counted.
SELECT name, rows FROM recrawl.row_counts;

-- name: count_rest
-- Leases, observations, the last cursor, sources that are active, the highest id of a page.
SELECT (SELECT count(*) FROM recrawl.leases), observations, last_cursor,
    (SELECT count(*) FROM recrawl.sources WHERE state = 'active'), (SELECT coalesce(max(id), 0) FROM recrawl.pages)
FROM recrawl.ledger;

-- name: count_paused
-- Active pages that are held back by a pause.
SELECT count(*) FROM (
    SELECT p.id FROM recrawl.pauses AS u JOIN recrawl.pages AS p ON p.group_name = u.name
    WHERE u.kind = 'group' AND p.state = 'active' AND p.role = 'page'
    UNION
    SELECT p.id FROM recrawl.pauses AS u JOIN recrawl.host_names AS h ON h.name = u.name
    JOIN recrawl.pages AS p ON p.host_no = h.no
    WHERE u.kind = 'host' AND p.state = 'active' AND p.role = 'page'
    UNION
    SELECT p.id FROM recrawl.pauses AS u JOIN recrawl.pages AS p ON p.url_key = u.name_key
    WHERE u.kind = 'page' AND p.state = 'active' AND p.role = 'page'
) AS paused;

-- name: check_counts
-- How many rows are counted wrong.
SELECT coalesce(sum(abs(coalesce(c.rows, 0) - coalesce(found.rows, 0))), 0)::bigint
FROM recrawl.row_counts AS c FULL JOIN (
    SELECT role || ' ' || state AS name, count(*) AS rows FROM recrawl.pages GROUP BY 1
    UNION ALL SELECT 'hosts', count(*) FROM recrawl.hosts
) AS found ON found.name = c.name;

-- name: check_lease_tokens
-- Tokens of leases that were never given out.
SELECT count(*) FROM recrawl.leases WHERE token > (SELECT last_token FROM recrawl.ledger);

-- name: check_lease_pages
-- Leases of pages that do not exist.
SELECT count(*) FROM recrawl.leases AS l WHERE NOT EXISTS (SELECT FROM recrawl.pages AS p WHERE p.id = l.page_id);

-- name: check_lease_retired
-- Leases of pages that are no longer tracked.
SELECT count(*) FROM recrawl.leases AS l JOIN recrawl.pages AS p ON p.id = l.page_id WHERE p.state = 'retired';

-- name: check_lease_settled
-- Leases whose result was applied.
SELECT count(*) FROM recrawl.leases AS l JOIN recrawl.pages AS p ON p.id = l.page_id WHERE p.settled_token >= l.token;

-- name: check_page_tokens
-- Pages whose last result is newer than their last lease, or whose tokens were never given out.
SELECT count(*) FROM recrawl.page_rows
WHERE settled_token > last_token OR last_token > (SELECT last_token FROM recrawl.ledger);

-- name: check_page_hosts
-- Pages whose host has no name.
SELECT count(*) FROM recrawl.pages AS p WHERE NOT EXISTS (SELECT FROM recrawl.host_names AS h WHERE h.no = p.host_no);

-- name: check_cursors
-- Cursors that are missing from the log.
SELECT l.last_cursor - (SELECT count(*) FROM recrawl.changes WHERE cursor BETWEEN 1 AND l.last_cursor)
FROM recrawl.ledger AS l;

-- name: check_cursors_beyond
-- Events beyond the end of the log.
SELECT count(*) FROM recrawl.changes WHERE cursor < 1 OR cursor > (SELECT last_cursor FROM recrawl.ledger);

-- name: check_observation_tokens
-- Fetches that are counted twice.
SELECT count(*) FROM (SELECT token FROM recrawl.observations GROUP BY token HAVING count(*) > 1) AS twice;

-- name: check_observation_pages
-- Fetches of pages that do not exist.
SELECT count(*) FROM recrawl.observations AS o WHERE NOT EXISTS (SELECT FROM recrawl.pages AS p WHERE p.id = o.page_id);

-- name: check_version_numbers
-- Versions that are newer than what their page says was published.
SELECT count(*) FROM recrawl.versions AS v JOIN recrawl.pages AS p ON p.id = v.page_id WHERE v.version > p.version;

-- name: check_version_bodies
-- Versions whose body is not kept.
SELECT count(*) FROM recrawl.versions AS v
WHERE v.body_digest IS NOT NULL AND NOT EXISTS (SELECT FROM recrawl.bodies AS b WHERE b.digest = v.body_digest);

-- name: bodies_after
-- A few bodies above a digest, to look at.
SELECT digest, body FROM recrawl.bodies WHERE digest > $1 ORDER BY digest LIMIT $2;

-- name: check_observation_count
-- How far the count of fetches that are kept is off.
SELECT abs(l.observations - (SELECT count(*) FROM recrawl.observations)) FROM recrawl.ledger AS l;

-- name: check_sinks
-- Sinks that have taken more than there is.
SELECT count(*) FROM recrawl.sinks WHERE cursor > (SELECT last_cursor FROM recrawl.ledger);

-- name: check_source_pages
-- Sources of pages that do not exist.
SELECT count(*) FROM recrawl.sources AS s WHERE NOT EXISTS (SELECT FROM recrawl.pages AS p WHERE p.id = s.page_id);
