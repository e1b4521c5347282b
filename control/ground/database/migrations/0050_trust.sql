-- Abuse reports by anybody, and pages that the phishing heuristic wants a person to look at.
create table abuse_reports (
  id text primary key,
  site_id text references sites (id) on delete cascade,
  url text not null,
  reason text not null,
  detail text not null default '',
  contact text not null default '',
  ip text not null,
  created_at timestamptz not null default now(),
  resolved_at timestamptz,
  resolution text
);
create index abuse_reports_open on abuse_reports (created_at) where resolved_at is null;

create table reviews (
  id text primary key,
  site_id text not null references sites (id) on delete cascade,
  score integer not null,
  reasons jsonb not null,
  created_at timestamptz not null default now(),
  resolved_at timestamptz,
  resolution text
);
create index reviews_open on reviews (created_at) where resolved_at is null;

create index sites_gallery on sites (published_at desc) where in_gallery and deleted_at is null;
