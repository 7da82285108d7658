-- Builds of templates that the server runs or ran. A row that says that its build runs, of which the
-- process knows nothing, is of a build that ended with an earlier process.
CREATE TABLE template_builds (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    state TEXT NOT NULL,
    document TEXT NOT NULL,
    made_by TEXT NOT NULL,
    started_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);

CREATE INDEX template_builds_by_age ON template_builds (project_id, started_at_ms);
