-- name: hosts
-- All hosts.
SELECT name, min_gap_s, next_at, blocked_until, failures, degraded_since, robots, robots_until, learned
FROM recrawl.hosts ORDER BY name;

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

-- name: count_pages
-- Pages by state, but for the active ones, which are the rest.
-- Those that are only sources are taken off, which needs no look at all pages.
SELECT state, sum(pages)::bigint
FROM (
    SELECT state, count(*) AS pages FROM recrawl.pages WHERE state <> 'active' GROUP BY state
    UNION ALL
    SELECT state, -count(*) FROM recrawl.pages WHERE role = 'source' AND state <> 'active' GROUP BY state
) AS counted
GROUP BY state;

-- name: count_paused
-- Active pages that are held back by a pause.
SELECT count(*) FROM recrawl.pages AS p
WHERE p.state = 'active' AND p.role = 'page' AND (
    p.group_name IN (SELECT name FROM recrawl.pauses WHERE kind = 'group')
    OR p.host_no IN (SELECT h.no FROM recrawl.pauses AS u JOIN recrawl.host_names AS h ON h.name = u.name
        WHERE u.kind = 'host')
    OR p.url_key IN (SELECT name_key FROM recrawl.pauses WHERE kind = 'page'));

-- name: count_rest
-- Pages, leases, observations, the last cursor, hosts, sources that are active, the highest id of a page.
SELECT (SELECT count(*) FROM recrawl.pages) - (SELECT count(*) FROM recrawl.pages WHERE role = 'source'),
    (SELECT count(*) FROM recrawl.leases), observations, last_cursor,
    (SELECT count(*) FROM recrawl.hosts), (SELECT count(*) FROM recrawl.sources WHERE state = 'active'),
    (SELECT coalesce(max(id), 0) FROM recrawl.pages)
FROM recrawl.ledger;

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
