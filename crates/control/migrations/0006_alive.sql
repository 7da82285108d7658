-- Rows of deleted sandboxes are kept for a while and soon outnumber the others. What a project has
-- is counted with every create and read with every list.
CREATE INDEX sandboxes_alive_by_project ON sandboxes (project_id, created_at_ms, id) WHERE deleted_at_ms IS NULL;
DROP INDEX sandboxes_by_project;
