-- name: current_generation
-- Who owns the store now; read in every transaction of an owner.
SELECT generation FROM ledger;

-- name: facts_all
-- Small facts.
SELECT name, value FROM facts;

-- name: order_post
-- A command leaves an order.
INSERT INTO orders (kind, payload, posted_at) VALUES ($1, $2, $3) RETURNING id;

-- name: order_answer
-- What became of an order.
UPDATE orders SET reply = $2, answered_at = $3 WHERE id = $1;

-- name: orders_forget
-- Nobody waits for an answer that long.
DELETE FROM orders WHERE answered_at < $1;

-- name: order_reply
-- The answer to an order, NULL while there is none.
SELECT reply FROM orders WHERE id = $1;

-- name: count_rest
-- Leases, observations, the last cursor, sources that are active, the highest id of a page.
SELECT (SELECT count(*) FROM leases), (SELECT observations FROM ledger), (SELECT coalesce(max(cursor), 0) FROM changes),
    (SELECT count(*) FROM sources WHERE state = 'active'), (SELECT coalesce(max(id), 0) FROM pages);

-- name: check_lease_tokens
-- Leases with tokens that were never given out.
SELECT count(*) FROM leases WHERE token > (SELECT last_token FROM ledger);

-- name: check_lease_pages
-- Leases of pages that do not exist.
SELECT count(*) FROM leases WHERE NOT EXISTS (SELECT 1 FROM pages WHERE pages.id = leases.page_id);

-- name: check_lease_retired
-- Leases of pages that are no longer tracked.
SELECT count(*) FROM leases JOIN pages ON pages.id = leases.page_id WHERE pages.state = 'retired';

-- name: check_lease_settled
-- Leases whose result was applied.
SELECT count(*) FROM leases JOIN pages ON pages.id = leases.page_id WHERE pages.settled_token >= leases.token;

-- name: check_page_tokens
-- Pages whose last result is newer than their last lease.
SELECT count(*) FROM pages WHERE settled_token > last_token;

-- name: check_page_tokens_given
-- Pages whose tokens were never given out.
SELECT count(*) FROM pages WHERE last_token > (SELECT last_token FROM ledger);

-- name: check_event_pages
-- Events of pages that do not exist.
SELECT count(*) FROM changes
WHERE page_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pages WHERE pages.id = changes.page_id);

-- name: check_observation_tokens
-- Results that were written twice.
SELECT count(*) FROM (SELECT token FROM observations GROUP BY token HAVING count(*) > 1) AS twice;

-- name: check_observation_pages
-- Observations of pages that do not exist.
SELECT count(*) FROM observations WHERE NOT EXISTS (SELECT 1 FROM pages WHERE pages.id = observations.page_id);

-- name: check_observation_count
-- How far the count of observations is off.
SELECT abs(ledger.observations - (SELECT count(*) FROM observations)) FROM ledger;

-- name: check_version_pages
-- Versions of pages that do not exist.
SELECT count(*) FROM versions WHERE NOT EXISTS (SELECT 1 FROM pages WHERE pages.id = versions.page_id);

-- name: check_version_numbers
-- Versions that are newer than what their page says was published.
SELECT count(*) FROM versions JOIN pages ON pages.id = versions.page_id WHERE versions.version > pages.version;

-- name: check_source_pages
-- Sources of pages that do not exist.
SELECT count(*) FROM sources WHERE NOT EXISTS (SELECT 1 FROM pages WHERE pages.id = sources.page_id);
