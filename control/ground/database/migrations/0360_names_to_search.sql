-- Parts of the names of drops, three characters each behind the mark of the organisation (control/doors/search/rules.ts): a
-- search for a part of a name reads those that have it. Triggers write them, so that no way to name a drop can forget it.
create table site_names (
  site_id text primary key references sites (id) on delete cascade,
  parts tsvector not null
);
create index site_names_index on site_names using gin (parts) with (fastupdate = off);

-- Ends are padded, so that each part of one or two characters begins one of three.
create function name_parts(org_id text, names text) returns tsvector language sql immutable as $$
  select array_to_tsvector(array(
    select left(encode(sha256(convert_to(org_id, 'UTF8')), 'hex'), 8) || substr(names || '  ', place, 3)
    from generate_series(1, length(names)) place))
$$;

create function note_names() returns trigger language plpgsql as $$
begin
  if new.org_id is null or new.deleted_at is not null then
    delete from site_names where site_id = new.id;
  else
    insert into site_names (site_id, parts)
    values (new.id, name_parts(new.org_id, lower(new.slug || ' ' || new.name || ' ' || new.title)))
    on conflict (site_id) do update set parts = excluded.parts;
  end if;
  return null;
end
$$;
create trigger sites_named after insert on sites
  for each row when (new.org_id is not null) execute function note_names();
create trigger sites_renamed after update of slug, name, title, org_id, deleted_at on sites
  for each row when (
    (old.slug, old.name, old.title, old.org_id, old.deleted_at) is distinct from
    (new.slug, new.name, new.title, new.org_id, new.deleted_at))
  execute function note_names();
