-- Stripe is the truth about payments; these rows remember what it last said.
create table billing_customers (
  org_id text primary key references organisations (id),
  customer_id text not null unique
);

-- The one open checkout of an organisation: a second click leads to the same page, so two tabs cannot buy twice.
create table billing_checkouts (
  org_id text primary key references organisations (id),
  session_id text not null,
  url text not null,
  plan text not null,
  billing_interval text not null,
  expires_at timestamptz not null
);

create table subscriptions (
  id text primary key,
  org_id text not null references organisations (id),
  plan text not null,
  billing_interval text not null,
  status text not null,
  current_period_end timestamptz,
  cancel_at_period_end boolean not null default false,
  -- Since when a payment is missing; the grace period counts from here.
  past_due_since timestamptz,
  checked_at timestamptz not null
);
create index subscriptions_org on subscriptions (org_id);

-- Event ids that were acted on, in the transaction that acted.
create table stripe_events (
  id text primary key,
  at timestamptz not null default now()
);
