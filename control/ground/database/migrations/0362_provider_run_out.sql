-- Nothing was left to ask the provider with: its sessions have ended, and tokens and apps rest until the person signs in
-- with it again. No one removed them; that is what lapsed_at says, and it alone.
alter table provider_identities add column ran_out_at timestamptz;
