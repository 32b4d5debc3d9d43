-- How many rows there are, kept as they come and change, so that counting reads none of them.

CREATE TABLE row_counts (          -- `hosts`, and pages by role and state, but for active pages: those are the rest
    name TEXT PRIMARY KEY,
    rows INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO row_counts (name, rows) VALUES
    ('page removed', 0), ('page quarantined', 0), ('page retired', 0),
    ('source active', 0), ('source removed', 0), ('source quarantined', 0), ('source retired', 0),
    ('hosts', (SELECT count(*) FROM hosts));
UPDATE row_counts SET rows = counted.rows FROM (
    SELECT iif(source_only, 'source ', 'page ') || state AS name, count(*) AS rows FROM pages
    WHERE state <> 'active' OR source_only = 1 GROUP BY 1) AS counted
WHERE counted.name = row_counts.name;

-- New rows of role `source` are counted by who adds them: a trigger would double the cost of adding pages.
CREATE TRIGGER pages_counted_moved AFTER UPDATE OF state, source_only ON pages
WHEN old.state <> new.state OR old.source_only <> new.source_only
BEGIN
    UPDATE row_counts SET rows = rows - 1 WHERE name = iif(old.source_only, 'source ', 'page ') || old.state;
    UPDATE row_counts SET rows = rows + 1 WHERE name = iif(new.source_only, 'source ', 'page ') || new.state;
END;
CREATE TRIGGER hosts_counted AFTER INSERT ON hosts
BEGIN
    UPDATE row_counts SET rows = rows + 1 WHERE name = 'hosts';
END;

-- Pages of one group are found without a look at all others.
CREATE INDEX pages_by_group ON pages (in_group);
