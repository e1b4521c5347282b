-- Files of former versions that stay reachable for tabs that were open (control/drops/sites/kept/kept-files.ts).
alter table sites
  -- Days; null: KEEP_OLD_FILES, 0: none.
  add column keep_old_files_days integer check (keep_old_files_days between 0 and 365),
  -- The manifest that visitors get: the live version's own with what is kept of former ones. It holds only while
  -- `served_for` is the live version's manifest; null: that one itself.
  add column served_manifest_hash text,
  add column served_for text,
  add column kept_files integer not null default 0,
  add column kept_bytes bigint not null default 0,
  -- When the last of them goes.
  add column kept_until timestamptz,
  -- When the next of them is due to go; null while each belongs to a version that is retained.
  add column kept_ends_at timestamptz;
create index sites_kept_ends on sites (kept_ends_at) where kept_ends_at is not null;

-- Which blobs they need, and what each counts for in storage.
create table kept_blobs (
  site_id text not null references sites (id) on delete cascade,
  hash text not null,
  size bigint not null,
  -- An edge may still serve it for a moment, so that it is collected a day later.
  ended_at timestamptz,
  primary key (site_id, hash)
);
create index kept_blobs_hash on kept_blobs (hash);

alter table uploads add column purge text check (purge in ('older', 'all'));
