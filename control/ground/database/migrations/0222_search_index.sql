-- What waits to be put into the index is read through by every search: words are written in the background anyway.
alter index site_words_index set (fastupdate = off);
select gin_clean_pending_list('site_words_index');
