-- Which history of the routing table this database writes (shared/history.ts). `life` says which life of which database
-- it was begun in: a restore brings the row back into another one, and a failover goes on in another one. Null: in none.
create table history (
  only_row boolean primary key default true check (only_row),
  ordinal bigint not null,
  id text not null,
  life text,
  -- Addresses without a drop that were removed in this history without being asked for.
  removed_unknown bigint not null default 0,
  began_at timestamptz not null default now()
);
insert into history (ordinal, id) values (0, 'none');
