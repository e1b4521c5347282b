-- Words begin with a mark of their organisation (control/doors/search/rules.ts), which divides the index by organisations:
-- what others say is not read. Those that are there get theirs here.
alter table site_words add column is_marked boolean not null default false;
update site_words w set is_marked = true, words = array_to_tsvector(array(
    select left(encode(sha256(convert_to(s.org_id, 'UTF8')), 'hex'), 8) || word from unnest(tsvector_to_array(w.words)) word))
  from sites s where s.id = w.site_id and s.org_id is not null;

-- The release before writes words without a mark while it still runs. They are read anew once it has gone.
create function note_unmarked_words() returns trigger language plpgsql as $$
begin
  insert into site_words_due (site_id, not_before) values (new.site_id, now() + interval '5 minutes')
  on conflict (site_id) do update set turn = site_words_due.turn + 1, not_before = now() + interval '5 minutes';
  return null;
end
$$;
create trigger site_words_unmarked after insert or update of words on site_words
  for each row when (not new.is_marked) execute function note_unmarked_words();

-- What was published last comes first: a search reads from there until it has found enough.
create index sites_latest on sites (org_id, published_at desc nulls last, id) where deleted_at is null;
