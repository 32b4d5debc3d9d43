-- name: page_find
-- A page by its address: the hash finds it, the address makes sure.
SELECT addresses.id, pages.state = 'retired' FROM addresses JOIN pages ON pages.id = addresses.id
WHERE addresses.url_hash = ?1 AND addresses.url = ?2;

-- name: page_find_tracked
-- Address and id of a page that is not retired.
SELECT addresses.url, addresses.id FROM addresses JOIN pages ON pages.id = addresses.id
WHERE addresses.url_hash = ?1 AND addresses.url = ?2 AND pages.state <> 'retired';

-- name: page_last_id
-- Pages are never deleted, so this is also how many there are.
SELECT ifnull(max(id), 0) FROM pages;

-- name: address_insert
-- The part of a new page that never changes.
INSERT INTO addresses (id, url_hash, url, source, added_at) VALUES (?1, ?2, ?3, ?4, ?5);

-- name: page_insert
-- The part of a new page that fetches change.
INSERT INTO pages (id, host, in_group, importance, objective, min_interval_s, max_interval_s)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: address_renew
-- A retired page is taken up anew: who says so, and when.
UPDATE addresses SET source = ?2, added_at = ?3 WHERE id = ?1;

-- name: page_renew
-- A retired page is taken up anew: what was learned stays, what stood against it is forgotten.
UPDATE pages SET host = ?2, in_group = ?3, importance = ?4, objective = ?5, min_interval_s = ?6, max_interval_s = ?7,
    state = 'active', reason = '', failures = 0, not_before = NULL, missing = 0, missing_since = NULL, crashes = 0
WHERE id = ?1;

-- name: page_edit
-- What a user changes; NULL leaves a field as it is.
UPDATE pages SET in_group = ifnull(?2, in_group), importance = ifnull(?3, importance),
    objective = ifnull(?4, objective), min_interval_s = ifnull(?5, min_interval_s),
    max_interval_s = ifnull(?6, max_interval_s), state = ifnull(?7, state), reason = ifnull(?8, reason),
    not_before = ifnull(?9, not_before)
WHERE id = ?1;

-- name: page_drop_signals
-- Nobody waits for a page that is retired.
DELETE FROM signals WHERE page_id = ?1;

-- name: page_read
-- A page whole.
SELECT * FROM page_rows WHERE id = ?1;

-- name: page_ids
-- Pages in the order of their ids.
SELECT id FROM pages WHERE id > ?1 ORDER BY id LIMIT ?2;

-- name: page_ids_of_host
-- The same of one host.
SELECT id FROM pages WHERE host = (SELECT id FROM names WHERE name = ?3) AND id > ?1 ORDER BY id LIMIT ?2;

-- name: page_ids_of_group
-- The same of one group.
SELECT id FROM pages WHERE in_group = (SELECT id FROM names WHERE name = ?3) AND id > ?1 ORDER BY id LIMIT ?2;

-- name: page_ids_of_host_and_group
-- The same of one group of one host.
SELECT id FROM pages WHERE host = (SELECT id FROM names WHERE name = ?3)
    AND in_group = (SELECT id FROM names WHERE name = ?4) AND id > ?1 ORDER BY id LIMIT ?2;

-- name: schedule_all
-- What a scheduler needs of all pages: one pass over narrow rows.
SELECT id, host, importance, objective, min_interval_s, max_interval_s, fetched_at, not_before, failures,
    (state = 'quarantined') + 2 * (state = 'removed'), in_group, belief
FROM pages WHERE state <> 'retired' ORDER BY id;

-- name: names_of
-- The text of a name.
SELECT name FROM names WHERE id = ?1;

-- name: pause_add
-- Twice is once.
INSERT INTO pauses (kind, name, at) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: pause_end
-- Ends a pause.
DELETE FROM pauses WHERE kind = ?1 AND name = ?2;

-- name: pauses_all
-- What is paused.
SELECT kind, name FROM pauses ORDER BY kind, name;
