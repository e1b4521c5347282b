-- Who may see addresses of versions that are not live, and previews that have names.
alter table sites add column previews text not null default 'link' check (previews in ('link', 'members', 'off'));

-- Published for a named preview, and never live: retention of live versions does not count it.
alter table versions add column is_preview boolean not null default false;

create table previews (
  site_id text not null references sites (id) on delete cascade,
  name text not null,
  version_id text not null references versions (id) on delete cascade,
  published_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (site_id, name)
);
create index previews_expiry on previews (expires_at);
create index previews_version on previews (version_id);

alter table uploads add column preview text;
