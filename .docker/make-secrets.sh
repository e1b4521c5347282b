#!/bin/sh
# Makes the passwords of the containers, once, into a volume: no person chooses them and no two installations share any.
# Set POSTGRES_PASSWORD or S3_SECRET for volumes that were made with passwords of your own.
set -eu
folder=${SECRETS_DIR:-/secrets}
umask 077
# So that the others can reach their files, which are closed each.
chmod 711 "$folder"

random() {
  od -An -N24 -tx1 /dev/urandom | tr -d ' \n'
}

# keep <file> <owner> <value>: written whole or not at all; what is there stays.
keep() {
  [ -s "$folder/$1" ] && return 0
  printf '%s' "$3" >"$folder/$1.new"
  [ "$(id -u)" = 0 ] && chown "$2" "$folder/$1.new"
  mv "$folder/$1.new" "$folder/$1"
}

# Who runs in the images: 999 is postgres, 1000 is node; MinIO and its client are root.
keep postgres-password 999 "${POSTGRES_PASSWORD:-$(random)}"
keep s3-password 0 "${S3_SECRET:-$(random)}"
keep database-url 1000 "postgres://dropway:$(cat "$folder/postgres-password")@postgres:5432/dropway"
keep blob-store 1000 "s3://dropway:$(cat "$folder/s3-password")@drops?endpoint=http://s3:9000&cache=/local/blobs"
keep s3-host 0 "http://dropway:$(cat "$folder/s3-password")@s3:9000"
