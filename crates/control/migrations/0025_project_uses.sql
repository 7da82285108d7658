-- What the sandboxes of a project that were not deleted come to, kept with each of them, so that a
-- create need not add them all up.
ALTER TABLE projects ADD COLUMN sandboxes_used BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN vcpus_used BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN memory_mb_used BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN disk_mib_used BIGINT NOT NULL DEFAULT 0;

UPDATE projects SET
    sandboxes_used = (SELECT COUNT(*) FROM sandboxes
        WHERE sandboxes.project_id = projects.id AND deleted_at_ms IS NULL),
    vcpus_used = (SELECT CAST(COALESCE(SUM(cpu), 0) AS BIGINT) FROM sandboxes
        WHERE sandboxes.project_id = projects.id AND deleted_at_ms IS NULL),
    memory_mb_used = (SELECT CAST(COALESCE(SUM(memory_mb), 0) AS BIGINT) FROM sandboxes
        WHERE sandboxes.project_id = projects.id AND deleted_at_ms IS NULL),
    disk_mib_used = (SELECT CAST(COALESCE(SUM(disk_mib), 0) AS BIGINT) FROM sandboxes
        WHERE sandboxes.project_id = projects.id AND deleted_at_ms IS NULL);

-- A node's sandboxes are compared with its rows a page at a time, in this order.
DROP INDEX sandboxes_alive_by_node;
CREATE INDEX sandboxes_alive_by_node ON sandboxes (node_id, created_at_ms, id)
    WHERE deleted_at_ms IS NULL;
