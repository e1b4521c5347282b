-- What was filled into a template, so that the same fields can be edited again. The page itself is an ordinary version.
create table template_fills (
  site_id text primary key references sites (id) on delete cascade,
  template text not null,
  fields jsonb not null,
  updated_at timestamptz not null
);
