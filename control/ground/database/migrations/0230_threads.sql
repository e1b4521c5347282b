-- Comments on drops. threads_visible: whether those who may only look see them. thread_mails: how soon the owner hears.
alter table sites add column threads_visible text not null default 'commenters'
  check (threads_visible in ('commenters', 'viewers'));
alter table sites add column thread_mails text not null default 'hourly'
  check (thread_mails in ('at_once', 'hourly', 'daily', 'never'));
-- Grows with every change of the drop's threads, so that an open page knows whether to ask anew.
alter table sites add column threads_changed bigint not null default 0;

create table threads (
  id text primary key,
  site_id text not null references sites (id),
  -- The path of the page, as visitors ask for it.
  page text not null,
  state text not null default 'open' check (state in ('open', 'resolved')),
  label text check (label in ('must', 'nice')),
  -- What was pointed at, as it was said; null for the page as a whole.
  anchor jsonb,
  -- Where it is in the version that was published last, and what stands there.
  placement text not null default 'same' check (placement in ('same', 'moved', 'changed', 'gone')),
  found jsonb,
  -- The named preview that it is about; null for what is live.
  preview text,
  -- The version that it was said about, the one that `placement` is about, and the one that mended it.
  version_number integer not null,
  placed_version integer not null,
  resolved_version integer,
  author_kind text not null check (author_kind in ('member', 'viewer', 'guest')),
  -- The user, the viewer or the guest link, and which browser of those that came by the link.
  author_id text not null,
  author_key text not null default '',
  author_name text not null,
  created_at timestamptz not null,
  resolved_at timestamptz
);
create index threads_site on threads (site_id, created_at);
create index threads_author on threads (author_id);

create table thread_messages (
  id text primary key,
  thread_id text not null references threads (id) on delete cascade,
  site_id text not null references sites (id),
  body text not null,
  author_kind text not null check (author_kind in ('member', 'viewer', 'guest')),
  author_id text not null,
  author_key text not null default '',
  author_name text not null,
  created_at timestamptz not null,
  edited_at timestamptz,
  -- When the owner's mail named it; null until then.
  mailed_at timestamptz
);
create index thread_messages_thread on thread_messages (thread_id, created_at);
create index thread_messages_author on thread_messages (author_id);
create index thread_messages_unmailed on thread_messages (site_id) where mailed_at is null;

-- Threads that a publish resolves, until its files have arrived.
alter table uploads add column resolves text[];
