-- When what names the person was erased from what is kept about a closed account; null before that.
alter table users add column erased_at timestamptz;
create index users_erasable on users (deleted_at) where deleted_at is not null and erased_at is null;
-- Finds a person's entries: their own deeds, and deeds whose subject is their address.
create index audit_log_user on audit_log (user_id) where user_id is not null;
create index audit_log_people on audit_log (lower(subject)) where subject like '%@%';
create index mails_recipient on mails (lower(recipient));
