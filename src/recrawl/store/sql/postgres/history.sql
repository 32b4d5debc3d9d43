-- name: observations_of_page
-- The last fetches of a page, the newest first.
SELECT page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes, elapsed_s,
    worker
FROM recrawl.observations WHERE page_id = $1 ORDER BY token DESC LIMIT $2;

-- name: all_observations
-- Fetches of all pages in the order they were written.
SELECT number, page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes,
    elapsed_s, worker
FROM recrawl.observations WHERE number > $1 ORDER BY number LIMIT $2;

-- name: last_observation
-- The number of the last fetch.
SELECT coalesce(max(number), 0) FROM recrawl.observations;

-- name: read_text
-- The text of one version.
SELECT text FROM recrawl.versions WHERE page_id = $1 AND version = $2;

-- name: read_last_text
-- The text of the last version that is kept.
SELECT text FROM recrawl.versions WHERE page_id = $1 ORDER BY version DESC LIMIT 1;

-- name: version_body
-- The digest of the body of one version, of the last if none is named.
SELECT body_digest FROM recrawl.versions WHERE page_id = $1 AND ($2::bigint IS NULL OR version = $2)
ORDER BY version DESC LIMIT 1;

-- name: versions
-- The versions of a page, the newest first.
SELECT version, at, digest FROM recrawl.versions WHERE page_id = $1 ORDER BY version DESC;

-- name: put_body
-- Keep a body; the same one is left as it is, a damaged one is replaced.
INSERT INTO recrawl.bodies (digest, body) VALUES ($1, $2)
ON CONFLICT (digest) DO UPDATE SET body = excluded.body WHERE bodies.body <> excluded.body;

-- name: read_body
-- A body, compressed.
SELECT body FROM recrawl.bodies WHERE digest = $1;

-- name: tallies
-- All counters.
SELECT name, value FROM recrawl.tallies ORDER BY name;

-- name: forget_observations
-- Delete fetches from before a time, within a range of numbers.
DELETE FROM recrawl.observations WHERE number BETWEEN $1 AND $2 AND at < $3;

-- name: observations_span
-- The numbers of the first and the last fetch.
SELECT coalesce(min(number), 0), coalesce(max(number), -1) FROM recrawl.observations;

-- name: crowded_pages
-- Pages with more versions than are kept, above a page.
SELECT page_id FROM recrawl.versions WHERE page_id > $1 GROUP BY page_id HAVING count(*) > $2 ORDER BY page_id LIMIT $3;

-- name: forget_versions
-- Delete all but the last so many versions of each of some pages.
DELETE FROM recrawl.versions AS v
USING (
    SELECT page_id, version, row_number() OVER (PARTITION BY page_id ORDER BY version DESC) AS age
    FROM recrawl.versions WHERE page_id = ANY($1::bigint[])
) AS aged
WHERE v.page_id = aged.page_id AND v.version = aged.version AND aged.age > $2;

-- name: forget_bodies
-- Of the next few bodies delete those that no version names and no result under way is about to name; the last of them.
WITH looked_at AS MATERIALIZED (
    SELECT digest FROM recrawl.bodies WHERE digest > $2 ORDER BY digest LIMIT $3
), deleted AS (
    DELETE FROM recrawl.bodies AS b USING looked_at AS l
    WHERE b.digest = l.digest AND b.digest <> ALL($1::bytea[])
        AND NOT EXISTS (SELECT FROM recrawl.versions AS v WHERE v.body_digest = b.digest)
)
SELECT digest FROM looked_at ORDER BY digest DESC LIMIT 1;
