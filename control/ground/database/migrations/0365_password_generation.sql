-- Counts the passwords that a person has had. What they opened as a member under an earlier one is over.
alter table users add column password_generation integer not null default 0;
