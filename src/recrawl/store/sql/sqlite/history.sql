-- name: observations_of_page
-- The newest first: along the page's chain, until it ends in what was forgotten.
WITH RECURSIVE chain (number, rest) AS (
    SELECT last_observation, ?2 FROM pages WHERE id = ?1
    UNION ALL
    SELECT observations.previous, chain.rest - 1
    FROM chain JOIN observations ON observations.number = chain.number WHERE chain.rest > 1
)
SELECT page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes, elapsed_s,
    worker
FROM chain JOIN observations ON observations.number = chain.number ORDER BY chain.number DESC;

-- name: observations_all
-- In the order they were written.
SELECT number, page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes,
    elapsed_s, worker
FROM observations WHERE number > ?1 ORDER BY number LIMIT ?2;

-- name: observation_last
-- The number of the last one.
SELECT ifnull(max(number), 0) FROM observations;

-- name: version_text
-- The text of one version.
SELECT text FROM versions WHERE page_id = ?1 AND version = ?2;

-- name: version_last_text
-- The text of the last version.
SELECT text FROM versions WHERE page_id = ?1 ORDER BY version DESC LIMIT 1;

-- name: version_body
-- The digest of the body of one version, of the last if none is named.
SELECT body_digest FROM versions WHERE page_id = ?1 AND (?2 IS NULL OR version = ?2) ORDER BY version DESC LIMIT 1;

-- name: versions_of_page
-- The newest first.
SELECT version, at, digest FROM versions WHERE page_id = ?1 ORDER BY version DESC;

-- name: observations_span
-- The numbers of the first and the last observation.
SELECT ifnull(min(number), 0), ifnull(max(number), -1) FROM observations;

-- name: forget_observations
-- Old ones within a range of numbers.
DELETE FROM observations WHERE number BETWEEN ?1 AND ?2 AND at < ?3;

-- name: forget_version_pages
-- Pages with more versions than are kept, above a page.
SELECT page_id FROM versions WHERE page_id > ?1 GROUP BY page_id HAVING count(*) > ?2 ORDER BY page_id LIMIT ?3;

-- name: forget_versions
-- All but the last so many versions of a page.
DELETE FROM versions WHERE page_id = ?1 AND version NOT IN (
    SELECT version FROM versions WHERE page_id = ?1 ORDER BY version DESC LIMIT ?2);

-- name: body_named
-- Whether a version names a body.
SELECT 1 FROM versions WHERE body_digest = ?1 LIMIT 1;
