-- OAuth 2.1: clients, what people allowed them, and the codes and tokens that follow. Secrets are kept as hashes.
create table oauth_clients (
  -- `cli_…` for registered clients, the https URL of its metadata document for the others.
  id text primary key,
  name text not null,
  redirect_uris text[] not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz
);

-- One per consent: revoking it ends every token that came from it.
create table oauth_grants (
  id text primary key,
  client_id text not null,
  client_name text not null,
  user_id text not null references users (id) on delete cascade,
  org_id text not null references organisations (id) on delete cascade,
  scopes text[] not null,
  -- Audience of the tokens.
  resource text not null,
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  revoked_at timestamptz
);
create index oauth_grants_user on oauth_grants (user_id) where revoked_at is null;

create table oauth_codes (
  hash text primary key,
  grant_id text not null references oauth_grants (id) on delete cascade,
  redirect_uri text not null,
  challenge text not null,
  expires_at timestamptz not null,
  used_at timestamptz
);

create table oauth_tokens (
  hash text primary key,
  grant_id text not null references oauth_grants (id) on delete cascade,
  kind text not null check (kind in ('access', 'refresh')),
  expires_at timestamptz not null,
  -- A refresh token is used once; using it again means that somebody copied it.
  used_at timestamptz
);
create index oauth_tokens_grant on oauth_tokens (grant_id);
create index oauth_tokens_expiry on oauth_tokens (expires_at);
