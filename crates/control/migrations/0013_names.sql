-- What a project calls a sandbox. A name is free again as soon as somebody wants its sandbox gone.
ALTER TABLE sandboxes ADD COLUMN name TEXT;
CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (project_id, name)
    WHERE name IS NOT NULL AND deleted_at_ms IS NULL AND state <> 'deleting';
