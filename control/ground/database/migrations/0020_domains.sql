-- Custom domains. A row is one account's claim to a name; of several claims at most one holds it.
create table domains (
  id text primary key,
  domain text not null,
  site_id text not null references sites (id),
  org_id text not null references organisations (id) on delete cascade,
  -- The other half of an apex/www pair: it redirects, and does not count against the plan.
  redirect_to text,
  state text not null default 'awaiting_dns' check (state in ('awaiting_dns', 'issuing', 'active', 'failing', 'blocked')),
  reason text,
  -- In words, as the last check found it.
  detail text not null default '',
  -- What the TXT record must say. Fresh with every claim: an old record proves nothing.
  verify_token text not null,
  -- DNS has proven this claim, and no later claim has taken the name.
  holds boolean not null default false,
  -- What the edges were told last.
  wanted boolean not null default false,
  -- The plan has ended; nothing is checked or served.
  stopped_at timestamptz,
  checked_at timestamptz,
  next_check_at timestamptz,
  -- Checks in a row that ended in the same state; they space out.
  checks integer not null default 0,
  created_at timestamptz not null default now(),
  -- A tombstone: kept so that it is known who gave the name up, and when.
  removed_at timestamptz
);
create unique index domains_holder on domains (domain) where holds and removed_at is null;
create unique index domains_claim on domains (domain, org_id) where removed_at is null;
create index domains_site on domains (site_id) where removed_at is null;
create index domains_org on domains (org_id) where removed_at is null;
create index domains_due on domains (next_check_at) where removed_at is null and next_check_at is not null;

-- What the edges keep in Redis, so that an empty Redis can be filled again. Bundles are sealed.
create table certificates (
  name text primary key,
  sealed text not null,
  not_before timestamptz not null,
  not_after timestamptz not null,
  updated_at timestamptz not null default now()
);

create table certificate_retries (
  name text primary key,
  state jsonb not null
);

create table acme_account (
  only_row boolean primary key default true check (only_row),
  sealed text not null
);
