-- Who may see a drop. In the mode `viewers`, sites.password_hash holds the word `viewers`, which no password gives: a
-- release that knows nothing of viewers asks for a password and opens to no one.
-- access_until: visitors meet 410 from then on, whatever the drop's clock says.
-- admission_ms: how long a browser is let in, where the owner wants it shorter than the service does.
alter table sites add column access_until timestamptz;
alter table sites add column access_requests boolean not null default true;
alter table sites add column admission_ms bigint;
alter table organisations add column visibility_policy text not null default 'open'
  check (visibility_policy in ('open', 'private_by_default', 'no_public'));
-- What a publish says about access, until its files have arrived.
alter table uploads add column access jsonb;

create table viewers (
  id text primary key,
  site_id text not null references sites (id),
  kind text not null check (kind in ('email', 'domain')),
  value text not null,
  role text not null default 'view' check (role in ('view', 'comment')),
  created_at timestamptz not null,
  invited_at timestamptz,
  reminded_at timestamptz,
  first_opened_at timestamptz,
  last_opened_at timestamptz,
  visits bigint not null default 0,
  unique (site_id, kind, value)
);
create index viewers_value on viewers (kind, value);

create table guest_links (
  id text primary key,
  site_id text not null references sites (id),
  token_hash text not null unique,
  name text not null default '',
  role text not null default 'view' check (role in ('view', 'comment')),
  expires_at timestamptz,
  max_uses integer,
  uses integer not null default 0,
  last_opened_at timestamptz,
  created_at timestamptz not null
);
create index guest_links_site on guest_links (site_id);

-- How long the last admission of a viewer, a guest link or a member lasts at the edges. Those that were ended before
-- their time are named in the drop's route record until then.
create table admissions (
  site_id text not null references sites (id),
  subject text not null,
  until timestamptz not null,
  ended_at timestamptz,
  primary key (site_id, subject)
);
create index admissions_until on admissions (until);

-- The newest code and link that were asked for by an address, listed or not: both leave the same traces. The address
-- itself is sealed, and forgotten when the mail is decided.
create table viewer_codes (
  site_id text not null references sites (id),
  email_hash text not null,
  code_hash text not null,
  link_hash text not null,
  subject text,
  tries integer not null default 0,
  expires_at timestamptz not null,
  primary key (site_id, email_hash)
);
create index viewer_codes_link on viewer_codes (link_hash);
create index viewer_codes_expires on viewer_codes (expires_at);

-- Links in invitations: they admit without a code, once.
create table viewer_invitations (
  token_hash text primary key,
  site_id text not null references sites (id),
  subject text not null,
  expires_at timestamptz not null
);
create index viewer_invitations_subject on viewer_invitations (site_id, subject);
create index viewer_invitations_expires on viewer_invitations (expires_at);

-- Strangers who ask to be let in, until the owner decides.
create table access_requests (
  token_hash text primary key,
  site_id text not null references sites (id),
  email text not null,
  created_at timestamptz not null,
  unique (site_id, email)
);

-- Batches of visits that were folded already, as view_batches.
create table visit_batches (
  id text primary key,
  folded_at timestamptz not null default now()
);
