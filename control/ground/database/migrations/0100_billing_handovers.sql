-- Organisations whose owner changed: the bill has to follow. A row stays until Stripe has done what was asked of it.
create table billing_handovers (
  org_id text primary key references organisations (id),
  -- When to try (again).
  due_at timestamptz not null
);
