-- The address that a request came from, or that a trusted proxy named. Absent where nobody asked, and
-- in entries from before.
ALTER TABLE audit_records ADD COLUMN client TEXT;
