-- Addresses of owners that are told what happens to their drops (control/drops/webhooks).
create table webhooks (
  id text primary key,
  org_id text not null references organisations (id) on delete cascade,
  url text not null,
  events text[] not null,
  description text not null default '',
  -- Sealed; the one before signs too until its time is over.
  sealed_secret text not null,
  sealed_former text,
  former_until timestamptz,
  created_at timestamptz not null,
  -- Since when nothing has arrived; null after a success.
  failing_since timestamptz,
  -- Switched off after three days of failures.
  disabled_at timestamptz
);
create index webhooks_org on webhooks (org_id);

-- What is still to be told, and what was. Written in the transaction of the event itself.
create table webhook_deliveries (
  id text primary key,
  -- The order of events of one drop: its changes wait for each other.
  seq bigint generated always as identity unique,
  webhook_id text not null references webhooks (id) on delete cascade,
  -- Null for a test. No reference: a drop that is gone is told about, too.
  site_id text,
  type text not null,
  body text not null,
  created_at timestamptz not null,
  attempts integer not null default 0,
  next_attempt_at timestamptz not null,
  -- Another control is sending it until then.
  claimed_until timestamptz,
  last_attempt_at timestamptz,
  last_status integer,
  last_answer text,
  last_error text,
  delivered_at timestamptz,
  failed_at timestamptz
);
create index webhook_deliveries_due on webhook_deliveries (next_attempt_at)
  where delivered_at is null and failed_at is null;
create index webhook_deliveries_order on webhook_deliveries (webhook_id, site_id, seq)
  where delivered_at is null and failed_at is null;
create index webhook_deliveries_of on webhook_deliveries (webhook_id, seq desc);
