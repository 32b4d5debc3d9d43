-- Tell a least interval of 0 from one of which nothing is said: `pages.min_interval_s` holds 0 where nothing is said, and -1
-- where 0 is said. Rows of earlier versions hold 0 for both, and count as nothing said; none is written again.

DROP VIEW page_rows;
CREATE VIEW page_rows AS           -- the columns of PageRow, in its order
SELECT pages.id, addresses.url, hosts_named.name AS host, groups_named.name AS in_group, pages.importance,
       objectives_named.name AS objective,
       iif(pages.min_interval_s, max(pages.min_interval_s, 0.0), NULL) AS min_interval_s, pages.max_interval_s,
       sources_named.name AS source,
       addresses.added_at, iif(pages.source_only, 'source', 'page') AS role, pages.state, pages.reason,
       pages.attempted_at, pages.fetched_at, pages.changed_at, pages.outcome, pages.failures, pages.not_before,
       pages.missing, pages.missing_since, pages.crashes, copies.etag, copies.last_modified, copies.validated_url,
       copies.raw_digest, copies.text_digest, copies.links_digest, copies.metadata_digest, copies.memory,
       pages.belief, pages.visits, pages.changes, pages.version, ifnull(leases.token, pages.last_token) AS last_token,
       pages.settled_token
FROM pages
JOIN addresses ON addresses.id = pages.id
JOIN names AS hosts_named ON hosts_named.id = pages.host
JOIN names AS groups_named ON groups_named.id = pages.in_group
JOIN names AS sources_named ON sources_named.id = addresses.source
LEFT JOIN names AS objectives_named ON objectives_named.id = pages.objective
LEFT JOIN copies ON copies.id = pages.id
LEFT JOIN leases ON leases.page_id = pages.id;

-- The rules of groups as they were when pages were last brought in line with them say nothing by 0 either.
UPDATE facts SET value = replace(value, '"min_interval_s": 0.0', '"min_interval_s": null') WHERE name = 'groups';

-- The next start of a tracker tells people that the setting `min-interval` binds these pages from now on.
INSERT INTO facts (name, value)
SELECT 'interval_notice', 'due' WHERE EXISTS (SELECT 1 FROM pages WHERE min_interval_s = 0 AND source_only = 0);
