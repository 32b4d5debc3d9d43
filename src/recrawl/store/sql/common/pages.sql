-- name: pauses_all
-- What is paused.
SELECT kind, name FROM pauses;

-- name: leases_all
-- Who has what, the oldest first.
SELECT page_id, token, worker, leased_at, until FROM leases ORDER BY token;

-- name: token_seen
-- Whether a result was written under a token.
SELECT 1 FROM observations WHERE token = $1;

-- name: sources_all
-- What is known of sources.
SELECT page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at FROM sources
ORDER BY page_id;
