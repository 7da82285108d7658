-- Who this database is to a node, and which node it knows. One row, whose id is drawn at the first
-- start. A database that has projects already is an older one of ours: it knows its node without
-- having written it down.
CREATE TABLE database_identity (
    singleton BIGINT PRIMARY KEY CHECK (singleton = 1),
    id TEXT NOT NULL,
    -- Grows each time that a control plane begins to work with the node.
    epoch BIGINT NOT NULL,
    -- Whether it has never met a node.
    is_new BIGINT NOT NULL,
    node_id TEXT,
    -- Another one after the node's directory was emptied.
    node_incarnation TEXT,
    -- Whether it was found to be older than the node knows. What happens to it afterwards does not
    -- make it younger, so this stays until the operator accepts it.
    is_older BIGINT NOT NULL DEFAULT 0
);

INSERT INTO database_identity (singleton, id, epoch, is_new)
SELECT 1, '', 0, CASE WHEN EXISTS (SELECT 1 FROM projects) THEN 0 ELSE 1 END;
