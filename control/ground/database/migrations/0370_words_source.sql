-- What the words of a drop were read from, after the version that they were read for. A version whose pages are the same is
-- found by the same words. The release before leaves this alone: where it writes another version they do not belong together.
alter table site_words add column source text;
