-- What a version withheld because of its content: promoting it must not keep these paths of the version before.
alter table versions add column withheld text[];
