-- One file that was sent ahead by a signed address, to be published by name afterwards.
create table content_uploads (
  id text primary key,
  org_id text not null references organisations (id) on delete cascade,
  name text not null,
  max_bytes bigint not null,
  -- Null until the file has arrived.
  hash text,
  size bigint,
  created_at timestamptz not null,
  expires_at timestamptz not null
);
create index content_uploads_org on content_uploads (org_id, created_at);
create index content_uploads_expiry on content_uploads (expires_at);
