-- name: lease_pages
-- Lease those of the pages that may be leased; tokens rise from $2 in the order given.
-- Materialized, so that no plan can choose again while it writes.
WITH free AS MATERIALIZED (
    SELECT p.id, w.place
    FROM unnest($1::bigint[]) WITH ORDINALITY AS w (id, place) JOIN recrawl.pages AS p ON p.id = w.id
    WHERE p.state <> 'retired' AND NOT EXISTS (SELECT FROM recrawl.leases AS l WHERE l.page_id = p.id)
)
INSERT INTO recrawl.leases (page_id, token, worker, leased_at, until)
SELECT id, $2::bigint + row_number() OVER (ORDER BY place), $3, $4, $5 FROM free
RETURNING page_id, token;

-- name: heartbeat
-- Prolong leases that are still there.
UPDATE recrawl.leases SET until = $2 WHERE token = ANY($1::bigint[]) RETURNING token;

-- name: release
-- Give leases back; their pages remember the tokens.
WITH ended AS MATERIALIZED (
    DELETE FROM recrawl.leases WHERE token = ANY($1::bigint[]) RETURNING page_id, token
)
UPDATE recrawl.pages AS p SET last_token = e.token FROM ended AS e WHERE p.id = e.page_id
RETURNING p.id;

-- name: end_leases_of_pages
-- The same by page, for pages that are no longer tracked.
WITH ended AS MATERIALIZED (
    DELETE FROM recrawl.leases WHERE page_id = ANY($1::bigint[]) RETURNING page_id, token
)
UPDATE recrawl.pages AS p SET last_token = e.token FROM ended AS e WHERE p.id = e.page_id;

-- name: crashed
-- End leases whose workers died, and count it against their pages.
WITH ended AS MATERIALIZED (
    DELETE FROM recrawl.leases WHERE token = ANY($1::bigint[]) RETURNING page_id, token
)
UPDATE recrawl.pages AS p SET last_token = e.token, crashes = p.crashes + 1 FROM ended AS e WHERE p.id = e.page_id
RETURNING p.id, e.token;

-- name: leases
-- All leases, the oldest first.
SELECT page_id, token, worker, leased_at, until FROM recrawl.leases ORDER BY token;
