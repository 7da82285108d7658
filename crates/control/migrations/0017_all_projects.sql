-- Views of operators over all projects. An event has a number of its own among those of all
-- projects: the numbers that each project has say nothing about the order between two of them. 0 is
-- an event from before this was kept; such a one is in its own project's list alone.
ALTER TABLE events ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
CREATE INDEX events_by_number ON events (number);

-- The last number that was given. It never goes back, also when old events are removed.
CREATE TABLE event_numbers (
    singleton BIGINT PRIMARY KEY CHECK (singleton = 1),
    last BIGINT NOT NULL
);

INSERT INTO event_numbers (singleton, last) VALUES (1, 0);

CREATE INDEX sandboxes_alive_by_age ON sandboxes (created_at_ms, id) WHERE deleted_at_ms IS NULL;
