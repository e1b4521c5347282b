-- Workflows that a drop trusts: their forge's token is exchanged for one of ours that publishes to this drop alone.
create table publishers (
  id text primary key,
  site_id text not null references sites (id),
  provider text not null check (provider in ('github', 'gitlab', 'forgejo', 'oidc')),
  issuer text not null,
  -- `owner/name` as the forge calls it; for `oidc` the expected `sub`.
  repository text not null,
  workflow text,
  branch text,
  environment text,
  -- Given at registration, or pinned by the first exchange: a name can be given away, an id cannot.
  repository_id text,
  owner_id text,
  -- Further claims that `oidc` compares.
  claims jsonb not null default '{}',
  created_by text references users (id) on delete set null,
  created_at timestamptz not null,
  last_used_at timestamptz,
  removed_at timestamptz
);
create index publishers_site on publishers (site_id) where removed_at is null;

-- What an exchange gave out. Kept as a hash, for a quarter of an hour.
create table publisher_tokens (
  token_hash text primary key,
  id text not null unique,
  publisher_id text not null references publishers (id),
  -- What the forge said about the run: repository, workflow, commit, actor.
  run jsonb not null,
  expires_at timestamptz not null
);
create index publisher_tokens_expiry on publisher_tokens (expires_at);

-- Tokens of forges that were exchanged, so that none is taken twice. Kept until they have run out by themselves.
create table exchanged_tokens (
  issuer text not null,
  jti text not null,
  expires_at timestamptz not null,
  primary key (issuer, jti)
);
create index exchanged_tokens_expiry on exchanged_tokens (expires_at);

-- The run of a workflow that a version comes from.
alter table versions add column source jsonb;
