-- What the words of a drop were read from, after the version that they were read for. A version whose pages are the same is
-- found by the same words. The release before writes another version and leaves this: then they do not belong together.
alter table site_words add column source text;
