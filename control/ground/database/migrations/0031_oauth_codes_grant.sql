-- Grants that nothing speaks for any more are deleted; their codes are looked up by it.
create index oauth_codes_grant on oauth_codes (grant_id);
