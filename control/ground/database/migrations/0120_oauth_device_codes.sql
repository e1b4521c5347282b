-- Device authorization (RFC 8628): a program without a browser shows a short code, and a person types it in elsewhere.
create table oauth_device_codes (
  hash text primary key,
  -- A keyed hash: the code is short enough to be guessed from a plain one.
  user_code_hash text not null unique,
  client_id text not null,
  client_name text not null,
  scopes text[] not null,
  resource text not null,
  -- The address that asked, which the person is shown.
  asked_from text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  -- Grows when the program asks too often.
  interval_seconds integer not null,
  polled_at timestamptz,
  denied_at timestamptz,
  -- Set when the person said yes.
  grant_id text references oauth_grants (id) on delete cascade,
  used_at timestamptz
);
create index oauth_device_codes_expiry on oauth_device_codes (expires_at);
create index oauth_device_codes_grant on oauth_device_codes (grant_id) where grant_id is not null;
