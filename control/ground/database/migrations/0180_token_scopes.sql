-- What a token may be used for, on which drops and until when; null where it is not limited. Tokens from before stay so.
alter table api_tokens add column scopes text[];
alter table api_tokens add column site_ids text[];
alter table api_tokens add column expires_at timestamptz;
-- Which kind of address used it last.
alter table api_tokens add column last_used_family text;
-- When its person was told that it ends soon.
alter table api_tokens add column end_told_at timestamptz;
create index api_tokens_ending on api_tokens (expires_at) where revoked_at is null and end_told_at is null;
