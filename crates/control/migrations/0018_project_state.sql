-- Whether a project may be used: active, suspended, deleting or deleted, and why not. A deleted one
-- keeps its row, because the audit record names it; nobody gets its name again.
ALTER TABLE projects ADD COLUMN state TEXT NOT NULL DEFAULT 'active';
ALTER TABLE projects ADD COLUMN state_reason TEXT NOT NULL DEFAULT '';
