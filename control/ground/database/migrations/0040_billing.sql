-- Stripe is the truth about payments; these rows remember what it last said.
create table billing_customers (
  org_id text primary key references organisations (id),
  customer_id text not null unique,
  -- Part of the idempotency key of the next checkout: a repeated attempt is the same one, a later one is not.
  checkouts_started integer not null default 0
);

-- The one open checkout of an organisation: a second click leads to the same page, so two tabs cannot buy twice.
create table billing_checkouts (
  org_id text primary key references organisations (id),
  session_id text not null,
  url text not null,
  plan text not null,
  billing_interval text not null,
  check_at timestamptz not null
);
create index billing_checkouts_due on billing_checkouts (check_at);

create table subscriptions (
  id text primary key,
  org_id text not null references organisations (id),
  plan text not null,
  billing_interval text not null,
  status text not null,
  current_period_end timestamptz,
  -- When a cancellation takes effect; null while it renews.
  ends_at timestamptz,
  -- Since when a payment is missing; the grace period counts from here.
  past_due_since timestamptz,
  -- When to ask Stripe again, whether or not an event came; null when it has ended for good.
  check_at timestamptz
);
create index subscriptions_org on subscriptions (org_id);
create index subscriptions_due on subscriptions (check_at) where check_at is not null;

-- Event ids that were acted on, in the transaction that acted.
create table stripe_events (
  id text primary key,
  at timestamptz not null
);
create index stripe_events_at on stripe_events (at);
