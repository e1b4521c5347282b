-- What a check found wrong in the zone, line by line, and what else the owner should know.
alter table domains add column records jsonb not null default '[]';
alter table domains add column alternative jsonb;
alter table domains add column warnings jsonb not null default '[]';
-- When the certificate authority is asked next, where its last answer was a refusal.
alter table domains add column next_try_at timestamptz;
-- Shown in the zone, it takes the name from the claim `transfer_from`; minted for that one transfer.
alter table domains add column transfer_token text;
alter table domains add column transfer_from text;
-- The alias in the zone is the one with which this claim lost the name: it counts again once it was seen to be gone.
alter table domains add column is_cname_spent boolean not null default false;
-- Since when the claim holds the name: what was seen in the zone before that decides nothing.
alter table domains add column held_since timestamptz;
-- The edges are being told to serve it; its state says so once they do.
alter table domains add column revealing boolean not null default false;
-- Since when it is failing: one mail per time.
alter table domains add column failing_since timestamptz;
