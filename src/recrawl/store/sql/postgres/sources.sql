-- name: source_states
-- Which pages exist, and their states as sources: NULL for those that are none.
SELECT p.id, s.state FROM recrawl.pages AS p LEFT JOIN recrawl.sources AS s ON s.page_id = p.id
WHERE p.id = ANY($1::bigint[]);

-- name: renew_sources
-- Retired sources are taken up anew: what they have brought stays.
UPDATE recrawl.sources AS s
SET kind = w.kind, found_by = w.found_by, state = 'active', reason = '', added_at = w.added_at
FROM unnest($1::bigint[], $2::text[], $3::text[], $4::float8[]) AS w (page_id, kind, found_by, added_at)
WHERE s.page_id = w.page_id;

-- name: save_sources
-- Write sources; a memory that is NULL is left as it is.
INSERT INTO recrawl.sources (page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at, memory)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::float8[], $11::bytea[])
ON CONFLICT (page_id) DO UPDATE
SET kind = excluded.kind, found_by = excluded.found_by, state = excluded.state, reason = excluded.reason,
    added_at = excluded.added_at, polls = excluded.polls, found = excluded.found, signals = excluded.signals,
    useful_at = excluded.useful_at, memory = coalesce(excluded.memory, sources.memory);

-- name: sources
-- What is known of sources.
SELECT page_id, kind, found_by, state, reason, added_at, polls, found, signals, useful_at FROM recrawl.sources
ORDER BY page_id;

-- name: source_memory
-- What the reader of one source remembers.
SELECT memory FROM recrawl.sources WHERE page_id = $1;

-- name: source_memories
-- What the readers of some sources remember.
SELECT page_id, memory FROM recrawl.sources WHERE page_id = ANY($1::bigint[]) AND memory IS NOT NULL;
