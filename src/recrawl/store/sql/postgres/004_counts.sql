-- How many rows there are: `hosts`, and pages by role and state. Kept by the statements that add rows or move them to
-- another state, so that counting reads none of them. A backup leaves it out: a restore counts.
CREATE TABLE recrawl.row_counts (
    name text PRIMARY KEY,
    rows bigint NOT NULL
) WITH (fillfactor = 50);
INSERT INTO recrawl.row_counts (name, rows)
SELECT role || ' ' || state, count(*) FROM recrawl.pages GROUP BY 1
UNION ALL SELECT 'hosts', count(*) FROM recrawl.hosts;

-- A stretch of hosts by name, in the same order on every server.
CREATE INDEX hosts_by_name ON recrawl.hosts (name COLLATE "C");
