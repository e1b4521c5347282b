-- Images that people pasted into comments. Their bytes are blobs; a blob that no row names any more is collected.
create table thread_images (
  id text primary key,
  site_id text not null references sites (id),
  -- Null until the message is sent: one that never is goes after a day.
  message_id text references thread_messages (id) on delete cascade,
  hash text not null,
  type text not null,
  byte_size integer not null,
  width integer not null,
  height integer not null,
  author_kind text not null check (author_kind in ('member', 'viewer', 'guest')),
  author_id text not null,
  author_key text not null default '',
  created_at timestamptz not null
);
create index thread_images_message on thread_images (message_id, created_at);
create index thread_images_site on thread_images (site_id);
create index thread_images_hash on thread_images (hash);
create index thread_images_author on thread_images (author_id);
