-- Uploads of changed files only: the list first, then the missing blobs, then `finish`.
create table uploads (
  id text primary key,
  site_id text not null references sites (id) on delete cascade,
  user_id text references users (id) on delete set null,
  message text not null default '',
  if_version integer,
  spa_fallback boolean,
  expires_at timestamptz not null,
  finished_at timestamptz
);
create index uploads_site on uploads (site_id);

create table upload_files (
  upload_id text not null references uploads (id) on delete cascade,
  path text not null,
  hash text not null,
  size bigint not null,
  -- The bytes are in the blob store: sent for this upload, or the organisation already had them.
  stored boolean not null,
  primary key (upload_id, path)
);
create index upload_files_hash on upload_files (hash);

-- Batches of view counts that were folded already: a crash between commit and clean-up never counts twice.
create table view_batches (
  id text primary key,
  folded_at timestamptz not null default now()
);

-- A version goes live with quick compression; a job compresses it harder afterwards.
alter table versions add column refined_at timestamptz;
create index versions_unrefined on versions (created_at) where refined_at is null and dropped_at is null;

-- Title of the version's landing page; the site shows that of the live one.
alter table versions add column title text not null default '';
