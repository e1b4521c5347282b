#!/bin/sh
# make-builder.sh <name>: makes the image in which the Containerfile builds, from Debian's packages, the Node of
# node_modules and the npm of this machine: for places that reach no registry of images. Needs mmdebstrap and buildah.
set -eu
name=$1
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mmdebstrap --quiet --variant=apt --include=libatomic1,libstdc++6 bookworm "$work/system.tar"
container=$(buildah from scratch)
buildah add --quiet "$container" "$work/system.tar" /
buildah copy --quiet "$container" "$root"/node_modules/node-linux-*/bin/node /usr/local/bin/node
# Not "npm root": that asks whichever Node comes first, and ours brings no npm.
npm=$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")
buildah copy --quiet "$container" "$npm" /usr/local/lib/npm
# Whom this machine trusts, the builder trusts: registries and proxies may have an authority of their own.
buildah copy --quiet "$container" /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
buildah config --env NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt \
  --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
printf '#!/bin/sh\nexec node /usr/local/lib/npm/bin/npm-cli.js "$@"\n' >"$work/npm"
chmod +x "$work/npm"
buildah copy --quiet "$container" "$work/npm" /usr/local/bin/npm
buildah commit --quiet --rm "$container" "$name"
