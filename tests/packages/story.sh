#!/bin/sh
# The life of the Debian packages on a booted machine: story.sh OLD NEW, two versions next to this script.
# Runs as root on a temporary machine. Rule to keep: every step is checked after it was done.
set -eu

old=$1 new=$2
place=$(dirname -- "$0")
export DEBIAN_FRONTEND=noninteractive
root=/var/lib/huai client=/var/lib/huai-client tree=/srv/mirror/tools copy=/srv/copy/tools
services='huai-server huai-fallback huai-watch@tools huai-client-watch'
starters='huai-client.timer huai-client@tools.timer huai-verify@tools.timer huai-server-maintain.timer
  huai-server-probe.timer huai-server-scrub.timer huai-commit@tools.path huai-commit@tools.timer
  huai-commit-request@tools.path'
mount=run-huai-fallback.mount

say() { printf '%s\n' "$*"; }
fail() {
  for unit in $services; do systemctl status --no-pager --full --lines=5 "$unit" || true; done
  printf 'story: %s\n' "$*" >&2
  exit 1
}
as_huai() { setpriv --reuid huai --regid huai --init-groups env HOME=/nonexistent "$@"; }
downstream() { as_huai env HUAI_CLIENT_ROOT="$client" huai-client "$@"; }
install() {
  apt-get -qq install --yes --no-install-recommends --allow-downgrades "$place/huai_$1_"*.deb "$place/huai-server_$1_"*.deb >/tmp/apt 2>&1 || fail "$(cat /tmp/apt)"
  dpkg-query -W -f '${Version}\n' huai huai-server | sort -u | grep -Fqx -- "$1" || fail "$1 is not installed"
}
wait_for() {
  for _ in $(seq 600); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.2
  done
  fail "$* does not come true"
}

# ------------------------------------------------------------------ what is looked at

equal() { diff -r --no-dereference --exclude=.~tmp~ "$tree" "$copy"; }
listed() { rsync "rsync://127.0.0.1/tools/pool/" | grep -q " $1\$"; }
changed() {
  as_huai touch "$tree/pool/$1"
  wait_for equal
  wait_for listed "$1"
}
running() {
  for unit in $services $starters $mount; do
    systemctl --quiet is-active "$unit" || fail "$unit does not run"
  done
}
processes() { for unit in $services; do systemctl show --property=MainPID --value "$unit"; done; }
mounted() { sed -n 's|^\([0-9]*\) .* /run/huai/fallback .*|\1|p' /proc/self/mountinfo; }
programs() { # those of huai and of rsync, by their command lines; this script's folder has another name
  for process in /proc/[0-9]*; do
    words=$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null || true)
    case $words in *huai* | *rsync*) printf '%s %s\n' "${process##*/}" "$words" ;; esac
  done
}
stopped() {
  [ -z "$(programs)" ] || fail "processes stay: $(programs)"
  [ -z "$(mounted)" ] && [ ! -e /run/huai ] || fail 'attr trees stay'
  [ -z "$(systemctl list-units --all --plain --no-legend --state=active,activating,failed 'huai*' 'run-huai*')" ] || fail "units stay: $(systemctl list-units --all 'huai*' 'run-huai*')"
}

# ------------------------------------------------------------------ installed

apt-get -qq update
install "$old"
id huai >/dev/null || fail 'there is no user huai'
for page in huai-client.1 huai-rsync.1 huai-server.1 huai-client.toml.5 huai-server.toml.5; do
  dpkg -L huai huai-server | grep -q "/$page.gz$" || fail "no man page $page"
done
! grep -rl /usr/local/bin /usr/lib/systemd/system/huai* || fail 'a unit names programs of another place'
[ "$(stat -c %a%U "$client" "$root" | sort -u)" = 750huai ] || fail 'the state folders are not the user'"'"'s alone'
[ "$(stat -c %U:%G /etc/huai)" = root:huai ] || fail 'the configuration is not of root'
[ -z "$(programs)" ] || fail "the installation starts $(programs)"
huai-rsync --version | grep -q rsync || fail 'huai-rsync does not run'
say "$old: installed with its dependencies, nothing started"

mkdir -p "$tree/pool" "$copy"
echo one >"$tree/pool/one"
chown -R huai:huai /srv/mirror /srv/copy
huai-server add tools "$tree" --content-url rsync://127.0.0.1/tools
as_huai huai-server commit tools
downstream add tools http://127.0.0.1:8440 "$copy"
# shellcheck disable=SC2086  # several names
systemctl enable --quiet --now $services $starters
wait_for equal
changed two
as_huai huai-server maintain tools
running
say 'four services, nine timers and paths: a change is committed, served, listed and synced'

# ------------------------------------------------------------------ upgraded

processes >/tmp/before
before=$(mounted)
install "$new"
running
processes >/tmp/after
! grep -Fxf /tmp/before /tmp/after || fail 'processes of the old version go on'
[ "$(mounted)" = "$before" ] || fail 'the attr trees were taken away'
! grep -l '/usr/lib/huai.*(deleted)' /proc/[0-9]*/maps 2>/dev/null || fail 'processes have files of the old version'
changed three
say "$new: upgraded, each service restarted, the attr trees kept, the next change synced"

systemctl stop huai-watch@tools
install "$old"
! systemctl --quiet is-active huai-watch@tools || fail 'an upgrade starts what was stopped'
install "$new"
systemctl start huai-watch@tools
running
say 'what was stopped stays so'

# ------------------------------------------------------------------ removed

apt-get -qq remove --yes huai huai-server >/dev/null 2>/tmp/remove || fail "$(cat /tmp/remove)"
stopped
! command -v huai-client huai-server huai-rsync || fail 'programs stay after remove'
[ -e "$client/client.toml" ] && [ -e /etc/huai/server.toml ] || fail 'remove took the configuration'
equal || fail 'the copy differs from the mirror'
say 'removed: no process, mount or program; configuration, state and trees stay'

# ------------------------------------------------------------------ from the layout of older versions

mv /etc/huai/server.toml "$root/server.toml"
rmdir --ignore-fail-on-non-empty /etc/huai
rm -rf /etc/huai
chown huai:huai "$root/server.toml"
install "$new"
grep -q 'server.toml is now /etc/huai/server.toml' /tmp/apt || fail 'nothing is said of the configuration'
[ ! -e "$root/server.toml" ] && [ "$(stat -c %U /etc/huai/server.toml)" = root ] || fail 'the configuration stays where huai may write it'
# shellcheck disable=SC2086  # several names
systemctl start $services $starters
changed four
huai-server status >/dev/null || fail 'root cannot read the configuration'
running
say 'the configuration of an older version is moved to /etc/huai, and all services go on'

# ------------------------------------------------------------------ purged

apt-get -qq purge --yes huai huai-server >/tmp/purge 2>&1 || fail "$(cat /tmp/purge)"
stopped
[ ! -e "$client" ] && [ -d "$root" ] || fail 'purge takes the state of the client alone'
grep -q "$root stays" /tmp/purge || fail 'purge does not say what stays'
rest=$(find /etc /run /usr /var -xdev -name '*huai*' ! -name Ushuaia ! -path "$root" ! -path '/var/log/journal/*')
[ -z "$rest" ] || fail "left behind: $rest"
[ -z "$(find /etc/systemd -xtype l)" ] || fail "links dangle: $(find /etc/systemd -xtype l)"
equal || fail 'the copy differs from the mirror'
say 'purged: no process, mount, link or file but the history of the metadata and the trees'
