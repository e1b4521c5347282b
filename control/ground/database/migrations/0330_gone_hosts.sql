-- Hosts that answer nothing any more, and since when that is known: their records go when every edge has long heard of it.
create table gone_hosts (
  host text primary key,
  -- Of the record that says so; a host that is used again has another.
  revision bigint not null,
  noted_at timestamptz not null
);
create index gone_hosts_noted on gone_hosts (noted_at);
create index routes_none on routes (host) where record ->> 'kind' = 'none';
-- What is left of drops that were deleted, oldest first.
create index sites_deleted on sites (deleted_at) where deleted_at is not null;
