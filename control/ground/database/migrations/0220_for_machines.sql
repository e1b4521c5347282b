-- What machines get of a drop: a list of its pages where it has none, and what its owner allows them to do with it.
alter table sites add column llms_txt boolean not null default true;
alter table sites add column ai text not null default 'allow' check (ai in ('allow', 'no-training', 'none'));
