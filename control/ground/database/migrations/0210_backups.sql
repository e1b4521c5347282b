-- Backups that the service takes by itself. A row without an end whose sign of life is old was begun by a control that died.
create table backups (
  id text primary key,
  started_at timestamptz not null,
  alive_at timestamptz not null,
  ended_at timestamptz,
  snapshot text,
  rows bigint,
  blobs bigint,
  error text
);
create index backups_started on backups (started_at desc);
