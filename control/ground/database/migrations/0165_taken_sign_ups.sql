-- A sign-up with an address that has an account makes an account of its own, which can never be verified: its answer is
-- the same as any other, so that it does not tell. The row's email is nobody's; what the person typed is typed_email.
-- password_tag is a few bits of a keyed hash: which of several such accounts a sign-in means.
alter table users add column typed_email text;
alter table users add column password_tag text;
create index users_typed_email on users (typed_email) where typed_email is not null;
