-- name: lease_candidate
-- Pages whole, in the order given, of those that may be leased: they are tracked, and nobody has them.
SELECT r.*
FROM unnest($1::bigint[]) WITH ORDINALITY AS w (id, place) JOIN page_rows AS r ON r.id = w.id
WHERE r.state <> 'retired' AND NOT EXISTS (SELECT FROM leases AS l WHERE l.page_id = w.id)
ORDER BY w.place;

-- name: lease_insert
-- Leases. The key makes sure that a page has one at most.
INSERT INTO leases (page_id, token, worker, leased_at, until)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::float8[], $5::float8[]);

-- name: lease_prolong
-- Workers are alive.
UPDATE leases AS l SET until = w.until FROM unnest($1::bigint[], $2::float8[]) AS w (token, until)
WHERE l.token = w.token RETURNING l.token;

-- name: lease_note_token
-- Pages remember the tokens of leases that end without a result.
UPDATE pages AS p SET last_token = w.token FROM unnest($1::bigint[], $2::bigint[]) AS w (id, token) WHERE p.id = w.id;

-- name: lease_end
-- End leases.
DELETE FROM leases WHERE token = ANY($1::bigint[]) RETURNING page_id, token;

-- name: lease_end_of_page
-- End the leases of pages that are retired.
DELETE FROM leases WHERE page_id = ANY($1::bigint[]) RETURNING page_id, token;

-- name: page_count_crash
-- Workers died with these pages in flight.
UPDATE pages SET crashes = crashes + 1 WHERE id = ANY($1::bigint[]);

-- name: lease_claim
-- End the leases of results; those that come back were good.
DELETE FROM leases AS l
USING unnest($1::bigint[], $2::bigint[]) AS w (page_id, token)
WHERE l.page_id = w.page_id AND l.token = w.token
RETURNING l.page_id, l.token;

-- name: result_end_lease
-- Nothing: `lease_claim` has ended it.
-- skipped

-- name: result_settled
-- Which results were written before: their observation is there, or was the last of its page.
SELECT w.page_id, w.token
FROM unnest($1::bigint[], $2::bigint[]) AS w (page_id, token)
WHERE w.token > 0 AND (
    EXISTS (SELECT FROM observations AS o WHERE o.token = w.token AND o.page_id = w.page_id)
    OR EXISTS (SELECT FROM pages AS p WHERE p.id = w.page_id AND p.settled_token = w.token));

-- name: result_observation
-- What was seen. The server gives the number, which is the first value.
-- drops: 1
-- takes: page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes, elapsed_s,
--     worker
-- copy: observations (page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes,
--     elapsed_s, worker)

-- name: result_page
-- Write pages as results leave them, by way of the staging table of the session; what users decide stays as it is.
-- What was heard of them before their fetch began is answered; that of one without a verdict began never.
-- Pages that move to another state are counted there. Wide rows go by COPY: it costs the client half of what arrays do.
-- drops: 1
-- takes: id, state, reason, attempted_at, fetched_at, changed_at, outcome, failures, not_before, missing, missing_since,
--     crashes, etag, last_modified, validated_url, raw_digest, text_digest, links_digest, metadata_digest, memory,
--     belief, visits, changes, version
-- copy: settled_pages (token, began_at, id, state, reason, attempted_at, fetched_at, changed_at, outcome, failures,
--     not_before, missing, missing_since, crashes, etag, last_modified, validated_url, raw_digest, text_digest,
--     links_digest, metadata_digest, memory, belief, visits, changes, version)
WITH answered AS (
    DELETE FROM signals AS s USING settled_pages AS w
    WHERE s.page_id = w.id AND s.last_at <= w.began_at
), moved AS (
    SELECT p.role, p.state AS before, w.state AS after
    FROM settled_pages AS w JOIN pages AS p ON p.id = w.id WHERE p.state <> w.state
), counted AS (
    INSERT INTO row_counts AS c (name, rows)
    SELECT name, sum(moves) FROM (
        SELECT role || ' ' || after AS name, 1 AS moves FROM moved
        UNION ALL SELECT role || ' ' || before, -1 FROM moved
    ) AS m GROUP BY name HAVING sum(moves) <> 0
    ON CONFLICT (name) DO UPDATE SET rows = c.rows + excluded.rows
)
UPDATE pages AS p
SET state = w.state, reason = w.reason, attempted_at = w.attempted_at, fetched_at = w.fetched_at,
    changed_at = w.changed_at, outcome = w.outcome, failures = w.failures, not_before = w.not_before,
    missing = w.missing, missing_since = w.missing_since, crashes = w.crashes, etag = w.etag,
    last_modified = w.last_modified, validated_url = w.validated_url, raw_digest = w.raw_digest,
    text_digest = w.text_digest, links_digest = w.links_digest, metadata_digest = w.metadata_digest,
    memory = w.memory, belief = w.belief, visits = w.visits, changes = w.changes, version = w.version,
    last_token = w.token, settled_token = w.token
FROM settled_pages AS w
WHERE p.id = w.id;

-- name: result_copy
-- Nothing: `result_page` writes the copy.
-- skipped

-- name: result_end_signals
-- Nothing: `result_page` ends them.
-- skipped

-- name: result_end_signals_of
-- End signals of kinds that results answer whatever came.
DELETE FROM signals AS s USING unnest($1::bigint[], $2::float8[], $3::text[]) AS w (id, began_at, kind)
WHERE s.page_id = w.id AND s.last_at <= w.began_at AND s.kind = w.kind;

-- name: result_version
-- Keep the texts of versions that are published.
-- takes: observation.page_id, version.version, version.at, version.digest, version.text, version.body_digest
INSERT INTO versions (page_id, version, at, digest, text, body_digest)
SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::float8[], $4::bytea[], $5::bytea[], $6::bytea[])
ON CONFLICT (page_id, version) DO UPDATE
SET at = excluded.at, digest = excluded.digest, text = excluded.text, body_digest = excluded.body_digest;

-- name: change_append
-- Events under their cursors.
-- takes: kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
INSERT INTO changes (cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest,
    trigger, detail, token)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::text[], $5::bigint[], $6::float8[], $7::bytea[],
    $8::bytea[], $9::text[], $10::text[], $11::bigint[]);

-- name: tally_raise
-- Raise counters by name.
INSERT INTO tallies (name, value) SELECT * FROM unnest($1::text[], $2::bigint[])
ON CONFLICT (name) DO UPDATE SET value = tallies.value + excluded.value;

-- name: source_state
-- Which pages exist, and their states as sources: NULL for those that are none.
SELECT p.id, s.state FROM pages AS p LEFT JOIN sources AS s ON s.page_id = p.id
WHERE p.id = ANY($1::bigint[]);

-- name: source_renew
-- Retired sources start again: what they have brought stays.
-- takes: page_id, kind, found_by, added_at
UPDATE sources AS s
SET kind = w.kind, found_by = w.found_by, state = 'active', reason = '', added_at = w.added_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::float8[]) AS w (page_id, kind, found_by, added_at)
WHERE s.page_id = w.page_id;

-- name: source_save
-- Write sources; a memory that is NULL is left as it is.
-- takes: page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at, memory
INSERT INTO sources (page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at, memory)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::float8[], $11::bytea[])
ON CONFLICT (page_id) DO UPDATE
SET kind = excluded.kind, found_by = excluded.found_by, state = excluded.state, reason = excluded.reason,
    added_at = excluded.added_at, polls = excluded.polls, found = excluded.found, signals = excluded.signals,
    useful_at = excluded.useful_at, memory = coalesce(excluded.memory, sources.memory);

-- name: source_save_memory
-- Nothing: `source_save` writes it.
-- skipped

-- name: source_memory
-- What the reader of one source remembers.
SELECT memory FROM sources WHERE page_id = $1;

-- name: source_memories
-- The same of some sources, with their pages.
SELECT page_id, memory FROM sources WHERE page_id = ANY($1::bigint[]) AND memory IS NOT NULL;

-- name: observations_of_page
-- The last fetches of a page, the newest first.
SELECT page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes, elapsed_s,
    worker
FROM observations WHERE page_id = $1 ORDER BY token DESC LIMIT $2;

-- name: forget_versions
-- Delete all but the last so many versions of each of some pages.
DELETE FROM versions AS v
USING (
    SELECT page_id, version, row_number() OVER (PARTITION BY page_id ORDER BY version DESC) AS age
    FROM versions WHERE page_id = ANY($1::bigint[])
) AS aged
WHERE v.page_id = aged.page_id AND v.version = aged.version AND aged.age > $2;

-- name: changes_after
-- Events between two cursors in their order, of all kinds or some.
SELECT * FROM changes WHERE cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor LIMIT $3;

-- name: changes_before
-- The same, the newest first.
SELECT * FROM changes WHERE cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor DESC LIMIT $3;

-- name: changes_of_page
-- The same of one page, in their order.
SELECT * FROM changes WHERE page_id = $5 AND cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor LIMIT $3;

-- name: changes_of_page_before
-- The same of one page, the newest first.
SELECT * FROM changes WHERE page_id = $5 AND cursor > $1 AND cursor < $2
    AND ($4::text[] IS NULL OR kind = ANY($4))
ORDER BY cursor DESC LIMIT $3;

-- name: dead_letter_add
-- What a sink could not take.
-- takes: sink, cursor, at, reason
INSERT INTO dead_letters (sink, cursor, at, reason)
SELECT * FROM unnest($1::text[], $2::bigint[], $3::float8[], $4::text[]);

-- name: signals_add
-- Count signals: one row for each page and kind, however many come; none for pages that are not tracked.
INSERT INTO signals (page_id, kind, count, first_at, last_at)
SELECT w.page_id, $2, w.heard, $3, $3
FROM (SELECT u.page_id, count(*) AS heard FROM unnest($1::bigint[]) AS u (page_id) GROUP BY u.page_id) AS w
JOIN pages AS p ON p.id = w.page_id AND p.state <> 'retired'
ON CONFLICT (page_id, kind) DO UPDATE
SET count = signals.count + excluded.count, first_at = least(signals.first_at, excluded.first_at),
    last_at = greatest(signals.last_at, excluded.last_at);

-- name: signals_of
-- What waits for a fetch of some pages.
SELECT page_id, kind, count, first_at, last_at FROM signals WHERE page_id = ANY($1::bigint[]) ORDER BY page_id, kind;
