-- Written and read again to find out whether the database can be written.
CREATE TABLE write_checks (
    id TEXT PRIMARY KEY,
    mark BIGINT NOT NULL
);

-- How much an entry of the audit record takes, and how much all of a project's do: a project's part
-- has a size, and its oldest entries make room for new ones.
ALTER TABLE audit_records ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN audit_bytes BIGINT NOT NULL DEFAULT 0;

UPDATE audit_records SET bytes = 128 + LENGTH(operation) + LENGTH(detail);
UPDATE projects SET audit_bytes = CAST((SELECT COALESCE(SUM(audit_records.bytes), 0) FROM audit_records
    WHERE audit_records.project_id = projects.id) AS BIGINT);
