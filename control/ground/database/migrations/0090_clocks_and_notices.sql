-- Since when a drop has a clock, where neither a publish nor a sign-in says so: it is live again, or a plan has ended.
alter table sites add column clock_started_at timestamptz;
-- The owner wants it among those that stay live when a plan ends.
alter table sites add column stays_live boolean not null default false;

-- When its owner may have to hear of its clock; now, whenever that has changed. The job looks and says when next.
alter table sites add column next_notice_at timestamptz;
create index sites_notice on sites (next_notice_at) where deleted_at is null and org_id is not null and next_notice_at is not null;

-- What owners were told about a drop's clock. `clock` is the end that it was about: another one is told of anew.
create table drop_notices (
  site_id text not null references sites (id) on delete cascade,
  kind text not null,
  clock timestamptz not null,
  -- The date that the mail named. Nothing of it happens before.
  acts_at timestamptz not null,
  sent_at timestamptz not null,
  primary key (site_id, kind, clock)
);

-- What owners of accounts that were never verified were told about their end.
create table account_notices (
  user_id text not null references users (id) on delete cascade,
  kind text not null,
  acts_at timestamptz not null,
  sent_at timestamptz not null,
  primary key (user_id, kind)
);
create index users_unverified on users (created_at) where email_verified_at is null;

-- Paused, taken-down, unverified and empty drops had a clock. It is made due, so that the next run looks at each and
-- stops it; a drop that is due and has no clock is never expired by it.
update sites s set expires_at = date_trunc('milliseconds', least(s.expires_at, now())), expired_at = null
from organisations o join users u on u.id = o.owner_id
where o.id = s.org_id and s.deleted_at is null and s.expires_at is not null
  and (s.paused_at is not null or s.taken_down_at is not null or s.live_version_id is null or u.email_verified_at is null);
update sites set next_notice_at = now() where org_id is not null and deleted_at is null and expires_at is not null;
