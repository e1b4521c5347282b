-- In a transaction of its own, so that changes of drops do not wait for it. What a trigger has written meanwhile is newer.
insert into site_names (site_id, parts)
  select id, name_parts(org_id, lower(slug || ' ' || name || ' ' || title)) from sites
  where org_id is not null and deleted_at is null
  on conflict (site_id) do nothing;
