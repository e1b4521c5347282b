-- What is looked up among all the drops there are: by claim link, by slug, and by clock. A drop whose clock has run out is
-- kept for weeks; looking for the next one must not pass all of those.
create index sites_claim on sites (claim_hash) where claim_hash is not null;
create index sites_slug on sites (slug) where deleted_at is null;
create index sites_running on sites (expires_at) where deleted_at is null and expired_at is null and expires_at is not null;
create index sites_expired on sites (expired_at) where deleted_at is null and expired_at is not null;
drop index sites_expiry;
