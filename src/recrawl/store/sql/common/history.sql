-- name: observations_all
-- In the order they were written.
SELECT number, page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes,
    elapsed_s, worker
FROM observations WHERE number > $1 ORDER BY number LIMIT $2;

-- name: observation_last
-- The number of the last one.
SELECT coalesce(max(number), 0) FROM observations;

-- name: observations_span
-- The numbers of the first and the last one.
SELECT coalesce(min(number), 0), coalesce(max(number), -1) FROM observations;

-- name: forget_observations
-- Old ones within a range of numbers.
DELETE FROM observations WHERE number BETWEEN $1 AND $2 AND at < $3;

-- name: observations_dropped
-- So many observations were deleted.
UPDATE ledger SET observations = observations - $1;

-- name: version_text
-- The text of one version, of the last if no number is given.
SELECT text FROM versions WHERE page_id = $1 AND (CAST($2 AS bigint) IS NULL OR version = $2)
ORDER BY version DESC LIMIT 1;

-- name: version_body
-- The digest of the body of one version, of the last if no number is given.
SELECT body_digest FROM versions WHERE page_id = $1 AND (CAST($2 AS bigint) IS NULL OR version = $2)
ORDER BY version DESC LIMIT 1;

-- name: versions_of_page
-- The newest first.
SELECT version, at, digest FROM versions WHERE page_id = $1 ORDER BY version DESC;

-- name: forget_version_pages
-- Pages with more versions than are kept, above a page.
SELECT page_id FROM versions WHERE page_id > $1 GROUP BY page_id HAVING count(*) > $2 ORDER BY page_id LIMIT $3;

-- name: tallies_all
-- All counters.
SELECT name, value FROM tallies ORDER BY name;
