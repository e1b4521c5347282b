-- A picture for where a drop's address is shared, if its owner wants one. `card_source`: what the drawn one shows; a picture
-- that could not be drawn has no hash. Its blob stands in kept_blobs.
alter table sites
  add column card boolean not null default false,
  add column card_source text,
  add column card_hash text,
  add column card_size integer;
create index sites_with_card on sites (id) where card and deleted_at is null;
