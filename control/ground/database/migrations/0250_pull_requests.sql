-- Pull requests of a trusted repository, those of forks too, may publish to a preview of their own, where the owner says so.
alter table publishers add column pull_requests boolean not null default false;
-- The one preview that a token publishes to; null for the drop itself. The hash of such a token is made in another way, so
-- that a release which does not know this column does not know the token either.
alter table publisher_tokens add column preview text;
