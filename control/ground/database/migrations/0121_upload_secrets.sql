-- The publisher said that files which look like secrets are meant to be public.
alter table uploads add column allow_secrets boolean not null default false;
