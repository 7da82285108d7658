-- What a sandbox may reach. The policy of an older sandbox is the one that every node gave it.
ALTER TABLE sandboxes ADD COLUMN egress TEXT NOT NULL DEFAULT '{"mode":"deny","rules":[]}';
-- Grows with every change. The node refuses an older one.
ALTER TABLE sandboxes ADD COLUMN egress_epoch BIGINT NOT NULL DEFAULT 0;
-- The last epoch that was given out. Above egress_epoch while the node is asked for a wider policy.
ALTER TABLE sandboxes ADD COLUMN egress_reserved BIGINT NOT NULL DEFAULT 0;
-- The last epoch that the node has confirmed.
ALTER TABLE sandboxes ADD COLUMN egress_confirmed BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN egress_changed_at_ms BIGINT NOT NULL DEFAULT 0;

CREATE INDEX sandboxes_by_unconfirmed_egress ON sandboxes (node_id)
    WHERE deleted_at_ms IS NULL AND (egress_confirmed <> egress_epoch OR egress_reserved <> egress_epoch);

-- What a new sandbox may reach when its create does not say. Without a row: nothing.
CREATE TABLE network_defaults (
    project_id TEXT PRIMARY KEY REFERENCES projects (id),
    policy TEXT NOT NULL,
    changed_at_ms BIGINT NOT NULL
);
