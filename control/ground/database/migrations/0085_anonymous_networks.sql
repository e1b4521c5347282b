-- From which network an anonymous drop came, as a keyed hash that nobody can turn back: what one network stores is bounded.
alter table sites add column anonymous_network text;
create index sites_anonymous_network on sites (anonymous_network) where org_id is null;
