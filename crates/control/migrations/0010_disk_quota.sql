-- What the disks of a project's sandboxes may add up to. NULL is as much as there is: projects from
-- before this line are limited by the host's room alone, as they were.
ALTER TABLE projects ADD COLUMN disk_mb_max BIGINT;
