-- Tell a least interval of 0 from one of which nothing is said: `pages.min_interval_s` holds 0 where nothing is said, and -1
-- where 0 is said. Rows of earlier versions hold 0 for both, and count as nothing said; none is written again.

-- The columns of `PageRow`, in its order.
DROP VIEW recrawl.page_rows;
CREATE VIEW recrawl.page_rows AS
SELECT p.id, p.url, h.name AS host, p.group_name, p.importance, p.objective,
    CASE WHEN p.min_interval_s <> 0 THEN greatest(p.min_interval_s, 0) END AS min_interval_s, p.max_interval_s, p.source,
    p.added_at, p.role, p.state, p.reason, p.attempted_at, p.fetched_at, p.changed_at, p.outcome, p.failures,
    p.not_before, p.missing, p.missing_since, p.crashes, p.etag, p.last_modified, p.validated_url, p.raw_digest,
    p.text_digest, p.links_digest, p.metadata_digest, p.memory, p.belief, p.visits, p.changes, p.version,
    coalesce(l.token, p.last_token) AS last_token, p.settled_token
FROM recrawl.pages AS p
JOIN recrawl.host_names AS h ON h.no = p.host_no
LEFT JOIN recrawl.leases AS l ON l.page_id = p.id;

-- The rules of groups as they were when pages were last brought in line with them say nothing by 0 either.
UPDATE recrawl.facts SET value = replace(value, '"min_interval_s": 0.0', '"min_interval_s": null') WHERE name = 'groups';

-- The next start of a tracker tells people that the setting `min-interval` binds these pages from now on.
INSERT INTO recrawl.facts (name, value)
SELECT 'interval_notice', 'due' WHERE EXISTS (SELECT FROM recrawl.pages WHERE min_interval_s = 0 AND role = 'page');
