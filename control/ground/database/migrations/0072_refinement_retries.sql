-- When a version that could not be compressed harder is tried again.
alter table versions add column refine_after timestamptz;
