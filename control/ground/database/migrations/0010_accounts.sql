-- Links sent by mail, throttles, invitations, and what the mailer needs to send each mail exactly once.

-- A deleted account keeps its row, emptied, because organisations and versions name it.
alter table users add column deleted_at timestamptz;

-- Links in mails. Kept after use, so that opening one twice can be told from a wrong one.
create table account_links (
  token_hash text primary key,
  kind text not null check (kind in ('verify', 'reset', 'email_change')),
  user_id text not null references users (id) on delete cascade,
  -- The address that the link proves.
  email text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index account_links_user on account_links (user_id, kind);
create index account_links_expiry on account_links (expires_at);

-- Counters of attempts; the key names what is counted, hashed where it holds somebody's address.
create table throttles (
  key text primary key,
  count integer not null,
  resets_at timestamptz not null
);
create index throttles_reset on throttles (resets_at);

create table invitations (
  id text primary key,
  token_hash text not null unique,
  org_id text not null references organisations (id) on delete cascade,
  email text not null,
  role text not null check (role in ('admin', 'member')),
  invited_by text not null references users (id) on delete cascade,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  revoked_at timestamptz
);
-- One open invitation per address and organisation.
create unique index invitations_open on invitations (org_id, lower(email)) where accepted_at is null and revoked_at is null;

-- Exactly one owner each; ownership moves by transfer.
create unique index memberships_owner on memberships (org_id) where role = 'owner';

alter table mails add column template text not null default '';
alter table mails add column failed_at timestamptz;
alter table mails add column last_error text;
drop index mails_due;
create index mails_due on mails (next_attempt_at) where sent_at is null and failed_at is null;

-- Written, in a transaction of its own, just before the last byte of a mail goes to the mail server. No foreign key:
-- the sender holds the mail's row locked meanwhile.
create table mail_handovers (
  mail_id text primary key,
  at timestamptz not null
);
