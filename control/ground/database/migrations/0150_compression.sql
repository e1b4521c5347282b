-- When everything that a version serves had its first encoded variants. What was refined had them long before.
alter table versions add column compressed_at timestamptz;
create index versions_uncompressed on versions (created_at)
  where compressed_at is null and refined_at is null and dropped_at is null;
