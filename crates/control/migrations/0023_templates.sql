-- Templates that projects have ordered: an image of a container that was asked for (kind 'image',
-- named by its address), or a version of a template of their own (kind 'version'). The node has the
-- bytes; `node_template` is its name for them. A row that is being deleted stays until the node has
-- said that it has given the template up.
CREATE TABLE ordered_templates (
    id TEXT PRIMARY KEY,
    project_id TEXT NOT NULL REFERENCES projects (id),
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    node_template TEXT NOT NULL UNIQUE,
    document TEXT NOT NULL,
    made_by TEXT,
    created_at_ms BIGINT NOT NULL,
    used_at_ms BIGINT NOT NULL,
    is_deleting BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX ordered_templates_by_name ON ordered_templates (project_id, kind, name, created_at_ms);

-- Which version a tag of a template means.
CREATE TABLE template_tags (
    project_id TEXT NOT NULL REFERENCES projects (id),
    name TEXT NOT NULL,
    tag TEXT NOT NULL,
    version_id TEXT NOT NULL REFERENCES ordered_templates (id) ON DELETE CASCADE,
    set_at_ms BIGINT NOT NULL,
    PRIMARY KEY (project_id, name, tag)
);
