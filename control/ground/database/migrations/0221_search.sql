-- Words of what a drop shows, for the search of its owner: single words, and pairs and triples of characters of scripts
-- that are written without spaces.
create table site_words (
  site_id text primary key references sites (id) on delete cascade,
  -- The live version that they are of.
  version_id text not null,
  words tsvector not null
);
create index site_words_index on site_words using gin (words);

-- Drops whose words are to be read anew. A trigger writes it, so that no way to change a drop can forget it. `turn` tells a
-- reader that was at it whether the drop has changed meanwhile.
create table site_words_due (
  site_id text primary key,
  turn bigint not null default 1,
  not_before timestamptz not null default now()
);
create index site_words_due_order on site_words_due (not_before);

create function note_words_due() returns trigger language plpgsql as $$
begin
  if new.live_version_id is null or new.org_id is null then
    delete from site_words where site_id = new.id;
  else
    insert into site_words_due (site_id) values (new.id)
    on conflict (site_id) do update set turn = site_words_due.turn + 1, not_before = now();
  end if;
  return null;
end
$$;

create trigger sites_words_due after update of live_version_id, org_id on sites
  for each row when (
    old.live_version_id is distinct from new.live_version_id or old.org_id is distinct from new.org_id)
  execute function note_words_due();

insert into site_words_due (site_id) select id from sites where live_version_id is not null and org_id is not null;
