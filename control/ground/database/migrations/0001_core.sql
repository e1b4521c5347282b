-- Accounts, organisations, sites, versions, and the routing table that is published from them.
-- Times are timestamptz; sizes are bytes; ids are opaque texts with a prefix (shared/ids.ts).

create table users (
  id text primary key,
  email text not null,
  password_hash text not null,
  email_verified_at timestamptz,
  is_staff boolean not null default false,
  created_at timestamptz not null default now(),
  last_sign_in_at timestamptz not null default now()
);
create unique index users_email on users (lower(email));

create table organisations (
  id text primary key,
  name text not null,
  plan text not null default 'free' check (plan in ('free', 'plus', 'business', 'starter', 'pro')),
  personal boolean not null default false,
  -- Resolved at sign-up from the country, then fixed.
  country text not null default 'US',
  currency text not null default 'usd',
  -- Serving depends on the owner: its verification, and for free drops its last sign-in.
  owner_id text not null references users (id),
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index organisations_owner on organisations (owner_id);

create table memberships (
  org_id text not null references organisations (id) on delete cascade,
  user_id text not null references users (id) on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member')),
  created_at timestamptz not null default now(),
  primary key (org_id, user_id)
);
create index memberships_user on memberships (user_id);

create table sessions (
  id text primary key,
  token_hash text not null unique,
  user_id text not null references users (id) on delete cascade,
  org_id text not null references organisations (id) on delete cascade,
  ip text not null,
  user_agent text not null default '',
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  expires_at timestamptz not null
);
create index sessions_user on sessions (user_id);

create table api_tokens (
  id text primary key,
  token_hash text not null unique,
  -- Last characters, to tell tokens apart in the settings page.
  hint text not null,
  name text not null,
  org_id text not null references organisations (id) on delete cascade,
  user_id text not null references users (id) on delete cascade,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index api_tokens_org on api_tokens (org_id);

-- A drop. `org_id` is null while it is anonymous.
-- What a visitor meets is derived from these columns in one place (control/sites/rules.ts, routeStateOf).
create table sites (
  id text primary key,
  org_id text references organisations (id),
  slug text not null,
  name text not null default '',
  -- Title of the live landing page, for lists.
  title text not null default '',
  password_hash text,
  password_generation integer not null default 0,
  analytics jsonb,
  spa_fallback boolean not null default false,
  in_gallery boolean not null default false,
  live_version_id text,
  next_version_number integer not null default 1,
  -- The clock: anonymous drops from their upload on, free drops from the owner's last sign-in on. Null: permanent.
  expires_at timestamptz,
  -- Set by the lifecycle job once an expiry has been noticed; recovery and final removal count from here.
  expired_at timestamptz,
  paused_at timestamptz,
  taken_down_at timestamptz,
  taken_down_reason text,
  deleted_at timestamptz,
  -- Browser that published it, and the one-time claim secret, while it is anonymous.
  anonymous_id text,
  claim_hash text,
  -- Random label that a custom domain's CNAME must point to.
  dns_target text not null unique,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  published_at timestamptz
);
create index sites_org on sites (org_id) where deleted_at is null;
create index sites_anonymous on sites (anonymous_id) where org_id is null;
create index sites_expiry on sites (expires_at) where deleted_at is null and expires_at is not null;

-- Who holds a slug. `former` slugs redirect until `free_at`, tombstones of deleted drops say "gone".
create table slugs (
  slug text primary key,
  site_id text not null references sites (id),
  kind text not null check (kind in ('current', 'former', 'tombstone')),
  free_at timestamptz
);
create index slugs_site on slugs (site_id);

create table versions (
  id text primary key,
  site_id text not null references sites (id),
  number integer not null,
  manifest_hash text not null,
  byte_size bigint not null,
  file_count integer not null,
  message text not null default '',
  report jsonb not null default '{"warnings":[]}',
  created_by text references users (id) on delete set null,
  created_at timestamptz not null default now(),
  -- Dropped by retention or with its site; its blobs may be collected.
  dropped_at timestamptz,
  unique (site_id, number)
);
create index versions_retained on versions (site_id, number desc) where dropped_at is null;

-- Which blobs a version needs (files, variants, sources and the manifest itself): what garbage collection must keep.
create table version_blobs (
  version_id text not null references versions (id) on delete cascade,
  hash text not null,
  primary key (version_id, hash)
);
create index version_blobs_hash on version_blobs (hash);

-- Every time a version went live: uploads and promotes alike.
create table publishes (
  id bigint generated always as identity primary key,
  site_id text not null references sites (id),
  version_id text not null,
  kind text not null check (kind in ('upload', 'promote')),
  user_id text,
  at timestamptz not null default now()
);
create index publishes_site on publishes (site_id, at desc);

-- The routing table as it must be published: one row per host, the newest revision wins.
create sequence route_revisions;
create table routes (
  host text primary key,
  record jsonb not null,
  revision bigint not null
);

-- What is still to be told to the edges, in order. Written in the transaction of the change itself.
create table outbox (
  id bigint generated always as identity primary key,
  kind text not null check (kind in ('route', 'domain', 'certificate')),
  name text not null,
  value text not null,
  revision bigint not null,
  created_at timestamptz not null default now()
);

-- Page views per day.
create table views (
  site_id text not null references sites (id) on delete cascade,
  day date not null,
  count bigint not null,
  primary key (site_id, day)
);

-- Mail to be sent, written in the transaction of the event it tells about. `event_key` makes it once per event.
create table mails (
  id text primary key,
  event_key text not null unique,
  recipient text not null,
  -- Sealed JSON { subject, text, html }: links in it are secrets.
  sealed text not null,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null default now(),
  sent_at timestamptz,
  created_at timestamptz not null default now()
);
create index mails_due on mails (next_attempt_at) where sent_at is null;

create table audit_log (
  id bigint generated always as identity primary key,
  org_id text references organisations (id) on delete cascade,
  user_id text,
  actor text not null,
  action text not null,
  subject text not null,
  detail jsonb not null default '{}',
  ip text,
  at timestamptz not null default now()
);
create index audit_log_org on audit_log (org_id, id desc);
