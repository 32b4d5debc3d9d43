-- name: pages_known
-- Pages by the hashes of their addresses, whatever their state: whether they are retired, or only sources.
SELECT addresses.url, addresses.id, pages.state = 'retired', pages.source_only
FROM json_each(?1) AS wanted CROSS JOIN addresses ON addresses.url_hash = wanted.value
JOIN pages ON pages.id = addresses.id;

-- name: pages_find
-- Addresses and ids of pages by the hashes of their addresses: of one role or both, perhaps retired ones too.
-- Indexes of few rows tell which are retired or sources: no page is read.
SELECT addresses.url, addresses.id
FROM json_each(?1) AS wanted CROSS JOIN addresses ON addresses.url_hash = wanted.value
WHERE (?2 OR NOT EXISTS (
        SELECT 1 FROM pages AS gone INDEXED BY pages_by_state
        WHERE gone.state <> 'active' AND gone.state = 'retired' AND gone.id = addresses.id))
    AND (?3 IS NULL OR (?3 = 'source') = EXISTS (
        SELECT 1 FROM pages AS other INDEXED BY pages_source_only
        WHERE other.source_only = 1 AND other.id = addresses.id));

-- name: address_insert
-- The part of a new page that never changes.
INSERT INTO addresses (id, url_hash, url, source, added_at) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: page_insert
-- The part of a new page that fetches change.
INSERT INTO pages (id, host, in_group, importance, objective, min_interval_s, max_interval_s, source_only)
VALUES (?1, ?6, ?7, ?8, ?9, ?10, ?11, ?12 = 'source');

-- name: address_renew
-- Tracking of a page starts again: who says so, and when.
UPDATE addresses SET source = ?2, added_at = ?3 WHERE id = ?1;

-- name: page_renew
-- Track a retired page again, or as a page what was only a source, with the wishes of now; what was learned stays. What
-- stood against a retired page is dropped. One that has left by the log is removed until it comes, which the log tells.
UPDATE pages SET host = ?6, in_group = ?7, importance = ?8, objective = ?9, min_interval_s = ?10, max_interval_s = ?11,
    source_only = ?12 = 'source', failures = iif(state = 'retired', 0, failures),
    not_before = iif(state = 'retired', NULL, not_before), missing = iif(state = 'retired', 0, missing),
    missing_since = iif(state = 'retired', NULL, missing_since), crashes = iif(state = 'retired', 0, crashes),
    reason = iif(state = 'retired', '', reason),
    state = CASE WHEN state <> 'retired' THEN state
        WHEN (SELECT kind FROM changes WHERE page_id = ?1 ORDER BY cursor DESC LIMIT 1) IN ('removed', 'moved')
        THEN 'removed' ELSE 'active' END
WHERE id = ?1;

-- name: page_edit
-- What a user changes; NULL leaves a field as it is.
UPDATE pages SET in_group = ifnull(?2, in_group), importance = ifnull(?3, importance),
    objective = ifnull(?4, objective), min_interval_s = ifnull(?5, min_interval_s),
    max_interval_s = ifnull(?6, max_interval_s), state = ifnull(?7, state), reason = ifnull(?8, reason),
    not_before = ifnull(?9, not_before)
WHERE id = ?1 RETURNING id, state;

-- name: page_drop_signals
-- Nobody waits for a page that is retired.
DELETE FROM signals WHERE page_id = ?1;

-- name: page_read
-- A page whole.
SELECT * FROM page_rows WHERE id = ?1;

-- name: page_ids
-- Pages in the order of their ids, of one role or both.
SELECT id FROM pages WHERE id > ?1 AND (?3 IS NULL OR source_only = (?3 = 'source')) ORDER BY id LIMIT ?2;

-- name: page_ids_in_state
-- Pages in a state, without those that are only sources.
SELECT id FROM pages WHERE state = ?1 AND source_only = 0 ORDER BY id;

-- name: page_ids_not_active
-- The same of a state that few pages are in.
SELECT id FROM pages WHERE state <> 'active' AND state = ?1 AND source_only = 0 ORDER BY id;

-- name: page_ids_of_sources
-- The same of those that are only sources, which are few.
SELECT id FROM pages INDEXED BY pages_source_only WHERE source_only = 1 AND id > ?1 ORDER BY id LIMIT ?2;

-- name: page_ids_asked_last
-- Pages of one host by when they were asked, the latest first.
SELECT id FROM pages
WHERE host = (SELECT id FROM names WHERE name = ?1) AND attempted_at IS NOT NULL
ORDER BY attempted_at DESC, id DESC LIMIT ?2;

-- name: page_ids_of_host
-- The same of one host.
SELECT id FROM pages WHERE host = (SELECT id FROM names WHERE name = ?4) AND id > ?1
    AND (?3 IS NULL OR source_only = (?3 = 'source')) ORDER BY id LIMIT ?2;

-- name: page_ids_of_group
-- The same of one group.
SELECT id FROM pages WHERE in_group = (SELECT id FROM names WHERE name = ?4) AND id > ?1
    AND (?3 IS NULL OR source_only = (?3 = 'source')) ORDER BY id LIMIT ?2;

-- name: page_ids_of_host_and_group
-- The same of one group of one host.
SELECT id FROM pages WHERE host = (SELECT id FROM names WHERE name = ?4)
    AND in_group = (SELECT id FROM names WHERE name = ?5) AND id > ?1
    AND (?3 IS NULL OR source_only = (?3 = 'source')) ORDER BY id LIMIT ?2;

-- name: schedule_common
-- What a scheduler needs of every page: one pass over narrow rows. The last number but one tells whether there is more.
SELECT id, host, importance, fetched_at,
    failures OR min_interval_s OR state <> 'active' OR coalesce(objective, max_interval_s, not_before) IS NOT NULL,
    belief
FROM pages WHERE state <> 'retired' AND source_only = 0 ORDER BY id;

-- name: schedule_more
-- What it needs of pages that have more than that, in the order of the ids.
SELECT ifnull(objective, 0), iif(min_interval_s, max(min_interval_s, 0.0), NULL), ifnull(max_interval_s, 9e999),
    not_before, failures, state = 'quarantined'
FROM json_each(?1) AS wanted CROSS JOIN pages ON pages.id = wanted.value;

-- name: schedule_paused_groups
-- Pages whose groups are paused.
SELECT id FROM pages WHERE in_group IN (
    SELECT names.id FROM pauses JOIN names ON names.name = pauses.name WHERE pauses.kind = 'group');

-- name: pause_add
-- Twice is once.
INSERT INTO pauses (kind, name, at) VALUES (?1, ?3, ?4) ON CONFLICT DO NOTHING;

-- name: pause_end
-- Ends a pause.
DELETE FROM pauses WHERE kind = ?1 AND name = ?3;
