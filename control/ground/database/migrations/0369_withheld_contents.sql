-- Hashes of what a version withheld because of its content: promoting it must not keep the same bytes under another name.
alter table versions add column withheld_contents text[];
