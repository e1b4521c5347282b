-- A code generator (RFC 6238) per person; its secret is sealed. Not asked for before it was confirmed with a code.
create table code_generators (
  user_id text primary key references users (id) on delete cascade,
  sealed_secret text not null,
  created_at timestamptz not null,
  confirmed_at timestamptz,
  -- The step of the last code that was taken: none is taken twice, nor one before it.
  last_step bigint not null default 0
);

-- For the day on which the generator is lost; each is good once.
create table recovery_codes (
  user_id text not null references users (id) on delete cascade,
  code_hash text not null,
  used_at timestamptz,
  primary key (user_id, code_hash)
);

-- Keys that a person's devices hold (WebAuthn): a way in by itself.
create table passkeys (
  -- As the browser names it (base64url).
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  name text not null,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null default '{}',
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkeys_user on passkeys (user_id);

-- What a browser was asked to sign; each is answered once.
create table passkey_challenges (
  challenge text primary key,
  -- Null before a sign-in: the passkey says whose it is.
  user_id text references users (id) on delete cascade,
  expires_at timestamptz not null
);
create index passkey_challenges_expiry on passkey_challenges (expires_at);

-- Someone who knows the password, and says that everything else is lost. It takes effect a day later, unless it is cancelled.
create table factor_recoveries (
  user_id text primary key references users (id) on delete cascade,
  cancel_hash text not null unique,
  requested_at timestamptz not null,
  due_at timestamptz not null
);

-- When the second factor was last proved in this session.
alter table sessions add column proved_at timestamptz;

-- Its members need a second factor to act for it.
alter table organisations add column requires_second_factor boolean not null default false;

-- Browsers that a person has signed in with, as far as people tell them apart.
create table known_devices (
  user_id text not null references users (id) on delete cascade,
  device text not null,
  seen_at timestamptz not null,
  primary key (user_id, device)
);
