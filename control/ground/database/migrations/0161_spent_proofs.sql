-- A proof of work admits one publish: what was presented is kept until it would have expired anyway.
create table spent_proofs (
  id text primary key,
  expires_at timestamptz not null
);
create index spent_proofs_expiry on spent_proofs (expires_at);
