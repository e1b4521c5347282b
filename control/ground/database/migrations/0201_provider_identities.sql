-- People who sign in with the operator's OpenID Connect provider: who they are there, and whose account that is here.
create table provider_identities (
  id text primary key,
  issuer text not null,
  subject text not null,
  user_id text not null references users (id),
  -- What asks the provider whether the person is still welcome; sealed.
  sealed_grant text,
  created_at timestamptz not null,
  checked_at timestamptz not null,
  -- The provider no longer vouches for them: tokens and apps of theirs rest until they sign in again.
  lapsed_at timestamptz,
  unique (issuer, subject)
);
create index provider_identities_user on provider_identities (user_id);

-- The organisation that groups of the provider give roles in.
create table provider_organisations (
  issuer text primary key,
  org_id text not null references organisations (id)
);

alter table sessions add column provider_identity_id text references provider_identities (id) on delete cascade;
alter table sessions add column provider_sid text;
create index sessions_provider on sessions (provider_identity_id) where provider_identity_id is not null;
