#!/bin/sh
# The life of the Debian packages on a clean system: story.sh OLD NEW, two versions below /packages.
# Runs as root in a container that goes away. Rule to keep: every step is looked at after it was done.
set -eu

old=$1 new=$2
export DEBIAN_FRONTEND=noninteractive
root=/var/lib/huai client=/var/lib/huai-client tree=/srv/mirror/tools copy=/srv/copy/tools

say() { printf '  %s\n' "$*"; }
fail() {
  printf 'story: %s\n' "$*" >&2
  exit 1
}
as_huai() { setpriv --reuid huai --regid huai --init-groups env HOME=/nonexistent "$@"; }
install() { apt-get -qq install --yes --no-install-recommends "/packages/huai_$1_"*.deb "/packages/huai-server_$1_"*.deb >/tmp/apt 2>&1 || fail "$(cat /tmp/apt)"; }
equal() { diff -r --no-dereference --exclude=.~tmp~ "$tree" "$copy" || fail 'the copy differs from the mirror'; }

round() {
  as_huai env HUAI_ROOT="$root" huai-server commit tools
  as_huai env HUAI_CLIENT_ROOT="$client" huai-client sync tools
  equal
}

apt-get -qq update
install "$old"
say "$old is installed, with its dependencies"
id huai >/dev/null || fail 'there is no user huai'
for page in huai-client.1 huai-rsync.1 huai-server.1 huai-client.toml.5 huai-server.toml.5; do
  dpkg -L huai huai-server | grep -q "/$page.gz$" || fail "no man page $page"
done
for unit in huai-client.timer huai-client@.service huai-verify@.timer huai-client-watch.service huai-server.service huai-server-maintain.timer huai-server-scrub.timer huai-server-probe.timer huai-watch@.service huai-commit@.path huai-commit-request@.path huai-fallback.service; do
  [ -e "/usr/lib/systemd/system/$unit" ] || [ -e "/lib/systemd/system/$unit" ] || fail "no unit $unit"
done
! grep -rl /usr/local/bin /lib/systemd/system/huai* || fail 'a unit names programs of another place'
[ "$(stat -c %a%U "$client" "$root" | sort -u)" = 750huai ] || fail 'the state folders are not the user'"'"'s alone'

mkdir -p "$tree/pool" "$copy"
echo one >"$tree/pool/one"
chown -R huai:huai /srv/mirror /srv/copy
printf 'port = 8730\naddress = 127.0.0.1\nuse chroot = no\n[tools]\npath = %s\nread only = yes\n' "$tree" >/tmp/rsyncd.conf
rsync --daemon --no-detach --config=/tmp/rsyncd.conf &
rsyncd=$!
as_huai env HUAI_ROOT="$root" huai-server add tools "$tree" --content-url rsync://127.0.0.1:8730/tools
as_huai env HUAI_ROOT="$root" huai-server commit tools
as_huai env HUAI_ROOT="$root" huai-server serve >/tmp/serve 2>&1 &
server=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  python3 -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8440/healthz")' 2>/dev/null && break
  sleep 1
done
as_huai env HUAI_CLIENT_ROOT="$client" huai-client add tools http://127.0.0.1:8440 "$copy"
round
as_huai env HUAI_ROOT="$root" huai-server maintain tools
say 'a mirror is committed, served, synced and maintained by the user huai'
huai-rsync --version | grep -q rsync || fail 'huai-rsync does not run'

install "$new"
dpkg-query -W -f '${Version}\n' huai huai-server | sort -u | grep -Fqx -- "$new" || fail "not upgraded to $new"
echo two >"$tree/pool/two"
round
say "upgraded to $new: state kept, next commit synced"

kill "$server" "$rsyncd"
apt-get -qq remove --yes huai huai-server >/dev/null
! command -v huai-client huai-server huai-rsync || fail 'programs stay after remove'
[ -e "$client/client.toml" ] && [ -e "$root/server.toml" ] || fail 'remove took the configuration'
equal
say 'removed: programs gone, state and trees stay'

install "$new"
huai-client --root "$client" status tools | grep -q tools || fail 'installed again, the state is not known'
apt-get -qq purge --yes huai huai-server >/tmp/purge
[ ! -e "$client" ] && [ ! -e /etc/logrotate.d/huai ] || fail 'purge leaves state of the client'
[ -d "$root" ] || fail 'purge took the history of the metadata'
grep -q "$root stays" /tmp/purge || fail 'purge does not say what stays'
[ ! -e /usr/lib/huai ] && [ ! -e /usr/lib/huai-server ] || fail "left behind: $(find /usr/lib/huai* | head)"
equal
say 'purged: state of the client gone, history of the upstream and trees stay'
