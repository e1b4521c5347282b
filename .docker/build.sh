#!/bin/sh
# build.sh [<name>]: builds <name> (everything) and <name>:roles, with buildah, podman or docker, whichever is there.
# `npm run image`. BUILDER names the image to build in; without it, and without a registry, one is made here.
set -eu
name=${1:-dropway}
cd "$(dirname "$0")/.."
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json)
revision=$(git rev-parse HEAD 2>/dev/null || echo unknown)

if command -v buildah >/dev/null; then
  # Needs no daemon and starts no container: also where engines may not.
  build='buildah build --isolation chroot --layers --format docker'
  builder=${BUILDER:-docker.io/library/node:26-bookworm-slim}
  if ! timeout 120 buildah pull --quiet --policy missing "$builder" >/dev/null 2>&1; then
    builder=localhost/dropway-builder
    buildah inspect --type image "$builder" >/dev/null 2>&1 || sh .docker/make-builder.sh "$builder"
  fi
  set -- --build-arg "BUILDER=$builder"
elif command -v podman >/dev/null; then
  build='podman build --layers --format docker'
  set --
else
  build='docker build'
  set --
fi
[ -n "${BUILDER:-}" ] && set -- --build-arg "BUILDER=$BUILDER"
set -- "$@" --build-arg "VERSION=$version" --build-arg "REVISION=$revision" --file Containerfile
$build --target roles --tag "$name:roles" "$@" .
$build --tag "$name:latest" "$@" .
