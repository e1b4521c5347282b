#!/bin/sh
# make-system.sh <folder of .deb files> <new folder>: unpacks Debian packages into a root file system, without their
# scripts, and says in var/lib/dpkg/status.d what came from where, for those who look for known faults.
set -eu
packages=$1
system=$2
mkdir -p "$system/var/lib/dpkg/status.d"
for package in "$packages"/*.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$system" \
    --exclude='./usr/share/man/*' --exclude='./usr/share/doc/*/*.gz' --exclude='./usr/share/lintian/*' \
    --exclude='./usr/share/initramfs-tools/*' --exclude='./usr/lib/*/gconv/*'
  dpkg-deb --field "$package" >"$system/var/lib/dpkg/status.d/$(dpkg-deb --field "$package" Package)"
done

cd "$system"
mkdir -p bin dev etc proc sys tmp run home/dropway
chmod 1777 tmp
for tool in cat df env id ls ps sh tr wget; do ln -s /bin/busybox "bin/$tool"; done
echo 'root:x:0:0:root:/root:/bin/false
dropway:x:1000:1000:Dropway:/home/dropway:/bin/sh' >etc/passwd
echo 'root:x:0:
dropway:x:1000:' >etc/group
echo 'hosts: files dns' >etc/nsswitch.conf
mkdir -m 700 data local
chown 1000:1000 data local home/dropway
