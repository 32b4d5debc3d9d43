-- name: lease_candidate
-- A page whole, if it may be leased: it is tracked, and nobody has it.
SELECT * FROM page_rows WHERE id = ?1 AND state <> 'retired' AND NOT EXISTS (SELECT 1 FROM leases WHERE page_id = ?1);

-- name: lease_insert
-- A lease. The key makes sure that a page has one at most.
INSERT INTO leases (page_id, token, worker, leased_at, until) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: lease_prolong
-- A worker is alive.
UPDATE leases SET until = ?2 WHERE token = ?1 RETURNING token;

-- name: leases_all
-- Who has what.
SELECT page_id, token, worker, leased_at, until FROM leases ORDER BY token;

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

-- name: result_state
-- What decides whether a result is applied: the lease, the last result, and the page's last observation.
SELECT pages.id, ifnull(leases.token, 0), pages.settled_token, pages.last_observation
FROM pages LEFT JOIN leases ON leases.page_id = pages.id WHERE pages.id = ?1;

-- name: result_seen
-- Whether a result was written before and is remembered.
SELECT 1 FROM observations WHERE token = ?1 AND page_id = ?2;

-- name: token_seen
-- The same by the token alone.
SELECT 1 FROM observations WHERE token = ?1;

-- name: result_observation
-- What was seen.
INSERT INTO observations (number, previous, page_id, token, at, outcome, verdict, trigger, status, fault, reason,
    gap_s, requests, wire_bytes, elapsed_s, worker)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: result_page
-- What is known of the page from then on.
UPDATE pages SET last_observation = ?1, last_token = ?2, settled_token = ?2, state = ?4, reason = ?5,
    attempted_at = ?6, fetched_at = ?7, changed_at = ?8, outcome = ?9, failures = ?10, not_before = ?11,
    missing = ?12, missing_since = ?13, crashes = ?14, visits = ?15, changes = ?16, version = ?17, belief = ?18
WHERE id = ?3;

-- name: result_copy
-- What is remembered of the copy; a row that stays the same is not written.
INSERT INTO copies (id, etag, last_modified, validated_url, raw_digest, text_digest, links_digest, metadata_digest,
    memory)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
ON CONFLICT (id) DO UPDATE SET etag = ?2, last_modified = ?3, validated_url = ?4, raw_digest = ?5, text_digest = ?6,
    links_digest = ?7, metadata_digest = ?8, memory = ?9
WHERE etag IS NOT ?2 OR last_modified IS NOT ?3 OR validated_url IS NOT ?4 OR raw_digest IS NOT ?5
    OR text_digest IS NOT ?6 OR links_digest IS NOT ?7 OR metadata_digest IS NOT ?8 OR memory IS NOT ?9;

-- name: result_version
-- A version that is published.
INSERT OR REPLACE INTO versions (page_id, version, at, digest, text, body_digest) VALUES (?1, ?2, ?3, ?4, ?5, ?6);

-- name: result_end_lease
-- The lease of a result that was applied.
DELETE FROM leases WHERE page_id = ?1;

-- name: result_end_signals
-- A fetch that began after a signal answers it.
DELETE FROM signals WHERE page_id = ?1 AND last_at <= ?2;

-- name: result_end_signals_of
-- A fetch that began after a signal of a kind answers it, whatever came.
DELETE FROM signals WHERE page_id = ?1 AND last_at <= ?2 AND kind = ?3;

-- name: tally_raise
-- Counters by name.
INSERT INTO tallies (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value + ?2;

-- name: tallies_all
-- All counters.
SELECT name, value FROM tallies ORDER BY name;
