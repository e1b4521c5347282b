-- Which blobs the versions of a site need (files, variants, sources and the manifests themselves): what garbage collection
-- must keep. A row spans consecutive versions, so that a deploy writes rows for what changed only.
create table site_blobs (
  site_id text not null references sites (id) on delete cascade,
  hash text not null,
  from_version integer not null,
  -- Null: the newest version needs it, and so may the next.
  to_version integer,
  primary key (site_id, hash, from_version)
);
create index site_blobs_hash on site_blobs (hash);

insert into site_blobs (site_id, hash, from_version, to_version)
  select v.site_id, b.hash, v.number, case when v.number + 1 = s.next_version_number then null else v.number end
  from version_blobs b join versions v on v.id = b.version_id join sites s on s.id = v.site_id;
drop table version_blobs;

-- An upload keeps its list in one value, and rows for the blobs that have to be sent only.
alter table uploads add column files json not null default '[]';
update uploads u set files = coalesce(
  (select json_agg(json_build_array(f.path, f.hash, f.size) order by f.path) from upload_files f where f.upload_id = u.id), '[]');
alter table uploads alter column files drop default;
-- Hashes do not compress, and trying takes time.
alter table uploads alter column files set storage external;

create table upload_blobs (
  upload_id text not null references uploads (id) on delete cascade,
  hash text not null,
  size bigint not null,
  -- The bytes are in the blob store.
  stored boolean not null default false,
  primary key (upload_id, hash)
);
create index upload_blobs_hash on upload_blobs (hash);
insert into upload_blobs (upload_id, hash, size, stored)
  select distinct on (upload_id, hash) upload_id, hash, size, stored from upload_files;
drop table upload_files;

-- A finished upload is deleted.
delete from uploads where finished_at is not null;
alter table uploads drop column finished_at;
