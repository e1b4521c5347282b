-- A file that was sent ahead counts against the plan until a publish has used it.
alter table content_uploads add column used_at timestamptz;
