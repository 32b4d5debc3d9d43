-- name: lease_candidate
-- A page whole, if it may be leased: it is tracked, and nobody has it.
SELECT * FROM page_rows WHERE id = ?1 AND state <> 'retired' AND NOT EXISTS (SELECT 1 FROM leases WHERE page_id = ?1);

-- name: lease_insert
-- A lease. The key makes sure that a page has one at most.
INSERT INTO leases (page_id, token, worker, leased_at, until) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: lease_prolong
-- A worker is alive.
UPDATE leases SET until = ?2 WHERE token = ?1 RETURNING token;

-- name: lease_note_token
-- The page remembers the token of a lease that ends without a result.
UPDATE pages SET last_token = ?2 WHERE id = ?1;

-- name: lease_end
-- Ends a lease.
DELETE FROM leases WHERE token = ?1 RETURNING page_id, token;

-- name: lease_end_of_page
-- Ends the lease of a page that is retired.
DELETE FROM leases WHERE page_id = ?1 RETURNING page_id, token;

-- name: page_count_crash
-- A worker died with the page in flight.
UPDATE pages SET crashes = crashes + 1 WHERE id = ?1;

-- name: lease_claim
-- The lease of a result, if it is good. Ending it here would take twice as long as a statement of its own.
SELECT page_id, token FROM leases WHERE page_id = ?1 AND token = ?2;

-- name: result_end_lease
-- The lease of a result that is applied.
DELETE FROM leases WHERE page_id = ?1 AND token = ?2;

-- name: result_settled
-- Whether a result was written before: its observation is there, or was the last of its page.
SELECT ?1, ?2 WHERE ?2 > 0 AND (EXISTS (SELECT 1 FROM observations WHERE token = ?2 AND page_id = ?1)
    OR EXISTS (SELECT 1 FROM pages WHERE id = ?1 AND settled_token = ?2));

-- name: result_observation
-- What was seen, at the end of the page's chain. The first value is its number.
-- takes: page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes, elapsed_s,
--     worker
INSERT INTO observations (number, previous, page_id, token, at, outcome, verdict, trigger, status, fault, reason,
    gap_s, requests, wire_bytes, elapsed_s, worker)
VALUES (?1, (SELECT last_observation FROM pages WHERE id = ?2), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14,
    ?15);

-- name: result_page
-- What is known of the page from then on. Before its fields: the number of the observation, the token, and when the
-- fetch began.
-- takes: state, reason, attempted_at, fetched_at, changed_at, outcome, failures, not_before, missing, missing_since,
--     crashes, visits, changes, version, belief, id
UPDATE pages SET last_observation = ?1, last_token = ?2, settled_token = ?2, state = ?4, reason = ?5,
    attempted_at = ?6, fetched_at = ?7, changed_at = ?8, outcome = ?9, failures = ?10, not_before = ?11,
    missing = ?12, missing_since = ?13, crashes = ?14, visits = ?15, changes = ?16, version = ?17, belief = ?18
WHERE id = ?19;

-- name: result_copy
-- What is remembered of the copy; a row that stays the same is not written.
-- takes: id, etag, last_modified, validated_url, raw_digest, text_digest, links_digest, metadata_digest, memory
INSERT INTO copies (id, etag, last_modified, validated_url, raw_digest, text_digest, links_digest, metadata_digest,
    memory)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (id) DO UPDATE SET etag = ?2, last_modified = ?3, validated_url = ?4, raw_digest = ?5, text_digest = ?6,
    links_digest = ?7, metadata_digest = ?8, memory = ?9
WHERE etag IS NOT ?2 OR last_modified IS NOT ?3 OR validated_url IS NOT ?4 OR raw_digest IS NOT ?5
    OR text_digest IS NOT ?6 OR links_digest IS NOT ?7 OR metadata_digest IS NOT ?8 OR memory IS NOT ?9;

-- name: result_end_signals
-- A fetch that began after a signal answers it.
DELETE FROM signals WHERE page_id = ?1 AND last_at <= ?2;

-- name: result_end_signals_of
-- A fetch that began after a signal of a kind answers it, whatever came.
DELETE FROM signals WHERE page_id = ?1 AND last_at <= ?2 AND kind = ?3;

-- name: result_version
-- A version that is published.
-- takes: observation.page_id, version.version, version.at, version.digest, version.text, version.body_digest
INSERT OR REPLACE INTO versions (page_id, version, at, digest, text, body_digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: change_append
-- An event under its cursor.
-- takes: kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
INSERT INTO changes (cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger,
    detail, token)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: tally_raise
-- Counters by name.
INSERT INTO tallies (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value + ?2;

-- name: source_state
-- Whether a page exists, and its state as a source: NULL if it is none.
SELECT pages.id, sources.state FROM pages LEFT JOIN sources ON sources.page_id = pages.id WHERE pages.id = ?1;

-- name: source_renew
-- A retired source starts again: what it has brought stays.
-- takes: page_id, kind, found_by, added_at
UPDATE sources SET kind = ?2, found_by = ?3, state = 'active', reason = '', added_at = ?4 WHERE page_id = ?1;

-- name: source_save
-- A source whole, but for its memory.
-- takes: page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at
INSERT INTO sources (page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (page_id) DO UPDATE SET kind = ?2, found_by = ?3, state = ?4, reason = ?5, added_at = ?6, polls = ?7,
    found = ?8, signals = ?9, useful_at = ?10;

-- name: source_save_memory
-- What its reader remembers; a row that stays the same is not written.
INSERT INTO source_memories (page_id, memory) VALUES (?1, ?2)
ON CONFLICT (page_id) DO UPDATE SET memory = ?2 WHERE memory <> ?2;

-- name: source_memory
-- What the reader of one source remembers.
SELECT memory FROM source_memories WHERE page_id = ?1;

-- name: source_memories
-- The same of some sources, with their pages.
SELECT page_id, memory FROM source_memories WHERE page_id = ?1;

-- name: observations_of_page
-- The newest first: along the page's chain, until it ends in what was deleted.
WITH RECURSIVE chain (number, rest) AS (
    SELECT last_observation, ?2 FROM pages WHERE id = ?1
    UNION ALL
    SELECT observations.previous, chain.rest - 1
    FROM chain JOIN observations ON observations.number = chain.number WHERE chain.rest > 1
)
SELECT page_id, token, at, outcome, verdict, trigger, status, fault, reason, gap_s, requests, wire_bytes, elapsed_s,
    worker
FROM chain JOIN observations ON observations.number = chain.number ORDER BY chain.number DESC;

-- name: forget_versions
-- All but the last so many versions of each of some pages.
DELETE FROM versions WHERE number IN (
    SELECT number FROM (
        SELECT number, row_number() OVER (PARTITION BY page_id ORDER BY version DESC) AS age
        FROM versions WHERE page_id IN (SELECT value FROM json_each(?1)))
    WHERE age > ?2);

-- name: changes_after
-- Events between two cursors in their order, of all kinds or some.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor LIMIT ?3;

-- name: changes_before
-- The same, the newest first.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor DESC LIMIT ?3;

-- name: changes_of_page
-- The same of one page, in their order.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE page_id = ?5 AND cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor LIMIT ?3;

-- name: changes_of_page_before
-- The same of one page, the newest first.
SELECT cursor, kind, detected_at, url, page_id, last_seen_unchanged_at, old_digest, new_digest, trigger, detail, token
FROM changes WHERE page_id = ?5 AND cursor > ?1 AND cursor < ?2
    AND (?4 IS NULL OR kind IN (SELECT value FROM json_each(?4)))
ORDER BY cursor DESC LIMIT ?3;

-- name: dead_letter_add
-- What a sink could not take.
-- takes: sink, cursor, at, reason
INSERT INTO dead_letters (sink, cursor, at, reason) VALUES (?1, ?2, ?3, ?4);

-- name: signals_add
-- One row for each page and kind, however many come; none for pages that are not tracked. Pages are never deleted, so
-- the highest id tells which exist, and an index of few rows which are retired: no page is read.
INSERT INTO signals (page_id, kind, count, first_at, last_at)
SELECT heard.value, ?2, 1, ?3, ?3 FROM json_each(?1) AS heard
WHERE heard.value BETWEEN 1 AND (SELECT max(id) FROM pages) AND NOT EXISTS (
    SELECT 1 FROM pages AS gone INDEXED BY pages_by_state
    WHERE gone.state <> 'active' AND gone.state = 'retired' AND gone.id = heard.value)
ON CONFLICT (page_id, kind) DO UPDATE SET count = count + 1, first_at = min(first_at, ?3), last_at = max(last_at, ?3);

-- name: signals_of
-- What waits for a fetch of some pages.
SELECT page_id, kind, count, first_at, last_at FROM signals
WHERE page_id IN (SELECT value FROM json_each(?1)) ORDER BY page_id, kind;
