-- The audit record of all projects in the order in which it was written, for whoever carries it
-- elsewhere: the numbers that each project has say nothing about the order between two of them. 0 is
-- an entry from before this was kept; such a one is not exported, and is not in the index.
ALTER TABLE audit_records ADD COLUMN number BIGINT NOT NULL DEFAULT 0;
CREATE INDEX audit_records_by_number ON audit_records (number) WHERE number > 0;

-- The last number that was given. It never goes back, also when old entries are removed, except in a
-- copy that is put back; so a series of numbers has a name, which no copy has.
CREATE TABLE audit_numbers (
    singleton BIGINT PRIMARY KEY CHECK (singleton = 1),
    last BIGINT NOT NULL,
    series TEXT NOT NULL
);

INSERT INTO audit_numbers (singleton, last, series) VALUES (1, 0, '');
