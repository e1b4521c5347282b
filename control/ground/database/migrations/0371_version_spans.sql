-- The manifest of the version whose blobs the open spans of its site were, exactly, when they were last written for it. The
-- release before leaves it alone: what it writes may leave spans open that the newest version does not need.
alter table versions add column spans_of text;
