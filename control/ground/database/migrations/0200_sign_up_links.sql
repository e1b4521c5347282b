-- Links of the operator by which a person may have an account, whatever SIGNUP says: one for the first owner of an
-- instance that lets nobody in by itself, and those of `admin invite`, each for one address.
create table sign_up_links (
  id text primary key,
  kind text not null check (kind in ('owner', 'person')),
  token_hash text not null unique,
  email text,
  created_at timestamptz not null,
  expires_at timestamptz,
  used_at timestamptz,
  used_by text references users (id)
);
create unique index sign_up_links_owner on sign_up_links (kind) where kind = 'owner';
create index sign_up_links_email on sign_up_links (email) where used_at is null;
