# packages.sh BASE DEBS WORK: tests the life cycle of the Debian packages on a Debian
# 13. Run by TestPackages, in a mount namespace of its own.
base=$1 debs=$2 work=$3
top=$(cd "$(dirname "$0")/../../.." && pwd)
fail() { echo "packages: $*"; exit 1; }

mkdir "$work"/{root,upper,overlay}
mount -t overlay overlay -o "lowerdir=$base,upperdir=$work/upper,workdir=$work/overlay" "$work/root" 2>/dev/null ||
	cp -a "$base/." "$work/root/"
root=$work/root
mount -t proc proc "$root/proc"
mkdir "$root/tmp/debs"
cp "$debs"/*.deb "$root/tmp/debs/"
in_root() { DEBIAN_FRONTEND=noninteractive chroot "$root" "$@"; }
install() { in_root sh -c 'dpkg -i /tmp/debs/*.deb' >"$work/log" 2>&1 || { cat "$work/log"; fail "dpkg -i"; }; }

install
grep -q '^basalt-worker:.*:/usr/sbin/nologin$' "$root/etc/passwd" || fail "no user basalt-worker without a login"
for unit in basaltd basalt-gpud basalt-fence basalt-guests basalt-gpu-driver; do
	[ "$(in_root systemctl is-enabled $unit)" = enabled ] || fail "$unit is not enabled"
done
[ "$(in_root systemctl is-enabled basalt-console || true)" = disabled ] || fail "the console took a screen without being asked"
[ "$(in_root systemctl is-enabled basalt-apparmor || true)" = disabled ] || fail "AppArmor profiles are loaded without being asked"
# Open vSwitch and OVN are started only by Basalt, even after an upgrade of their
# packages, whose scripts unmask and enable them.
own_switch="ovsdb-server ovs-vswitchd openvswitch-switch ovn-central ovn-host ovn-controller ovn-northd ovn-ovsdb-server-nb ovn-ovsdb-server-sb"
in_root dpkg-reconfigure openvswitch-switch ovn-host ovn-central >"$work/log" 2>&1 || { cat "$work/log"; fail "their packages' scripts"; }
for unit in $own_switch; do
	[ "$(in_root systemctl is-enabled $unit || true)" = masked ] || fail "$unit may start by itself"
done
for program in ovs-vswitchd ovsdb-server ovn-controller ovn-northd restic; do
	in_root sh -c "command -v $program" >/dev/null || fail "no $program"
done
[ ! -e "$root/etc/systemd/system/basalt-install.target.wants" ] || fail "the installer starts on a node"
units=(basalt-guests.service basaltd.service basalt-gpud.service basalt-fence.service basalt-upgrade.service basalt-install.target basalt-install@ttyS0.service)
[ ! -x "$root/usr/bin/basalt-console" ] || units+=(basalt-console.service)
in_root systemd-analyze verify "${units[@]}" || fail "systemd does not like a unit"
for program in basaltd basalt basalt-gpud; do
	in_root "$program" --help >/dev/null 2>&1 || fail "$program does not run on this Debian"
done

# The kernel here may have no AppArmor; its parser compiles the profiles anyway.
in_root sh -c 'apparmor_parser --skip-kernel-load --skip-cache /usr/share/basalt/apparmor/basalt-*' || fail "AppArmor's parser refuses a profile"

# A node's own configuration survives an upgrade, without a question.
echo 'node-name: mine' >"$root/etc/basalt/basaltd.yaml"
install
[ "$(cat "$root/etc/basalt/basaltd.yaml")" = 'node-name: mine' ] || fail "an upgrade changed basaltd.yaml"

# An upgrade to a release that does not work (nothing serves here) restores the old
# state with packages made from the installed files.
version=$(in_root dpkg-query -W -f '${Version}' basalt)
files() { in_root sh -c 'dpkg-query -L basalt basalt-guest-tools | sort -u | while read -r f; do if [ -e "$f" ]; then stat -c "%N %F %a %U %s" "$f"; fi; done' | grep -v gpud; }
was=$(files)
echo '# mine' >>"$root/etc/default/basalt-gpud"
in_root env BASALT_UPGRADE_LIMIT=0 /usr/lib/basalt/upgrade start --id try --version "$version" --socket /none --outcome /var/lib/basalt/upgrade/outcome.json \
	--package "/tmp/debs/basalt_${version}_amd64.deb" --package "/tmp/debs/basalt-guest-tools_${version}_amd64.deb" || fail "the upgrade does not start"
for _ in {1..300}; do [ ! -e "$root/var/lib/basalt/upgrade/outcome.json" ] || break; sleep 1; done
grep -q "version $version is installed again" "$root/var/lib/basalt/upgrade/outcome.json" || { cat "$root"/var/lib/basalt/upgrade/{log,dpkg.log,outcome.json}; fail "the release before is not put back"; }
[ "$(files)" = "$was" ] || fail "what is put back is not what was there"
in_root dpkg --verify basalt basalt-guest-tools | grep -v ' c /etc/default/basalt-gpud$' && fail "the files put back are not the package's"
grep -q '# mine' "$root/etc/default/basalt-gpud" || fail "an upgrade changed basalt-gpud's settings"
rm -rf "$root/var/lib/basalt/upgrade"

# Debian's packages are installed from a medium if it is signed with the key that the
# node trusts.
mkdir -p "$work/less/DEBIAN" "$root/etc/apt/keyrings" "$work/newer"
printf 'Package: less\nVersion: 99999\nArchitecture: amd64\nMaintainer: T <t@localhost>\nDescription: test\n' >"$work/less/DEBIAN/control"
dpkg-deb --root-owner-group --build "$work/less" "$work/newer/less_99999_amd64.deb" >/dev/null
"$top/installer/iso/repository.sh" "$work/key" "$root/tmp/medium/packages" "$work/newer/less_99999_amd64.deb" "$debs"/basalt_*.deb >"$work/log"
"$top/installer/iso/repository.sh" "$work/other" "$work/medium" "$work/newer/less_99999_amd64.deb" >"$work/log"
less=$(in_root dpkg-query -W -f '${Version}' less)
refused() { # WHY
	if in_root /usr/lib/basalt/update-debian /tmp/medium >"$work/log" 2>&1; then fail "update-debian takes $1"; fi
	[ "$(in_root dpkg-query -W -f '${Version}' less)" = "$less" ] || fail "update-debian installs $1"
}
rm -f "$root/etc/apt/keyrings/basalt.gpg"
refused "a medium without a key"
cp "$work/other.pub" "$root/etc/apt/keyrings/basalt.gpg"
refused "a medium that another key has signed"
cp "$work/key.pub" "$root/etc/apt/keyrings/basalt.gpg"
cp "$root/tmp/medium/packages/less_99999_amd64.deb" "$work/kept.deb"
echo more >>"$root/tmp/medium/packages/less_99999_amd64.deb"
refused "a package that was changed"
cp "$work/kept.deb" "$root/tmp/medium/packages/less_99999_amd64.deb"
in_root /usr/lib/basalt/update-debian /tmp/medium >"$work/log" 2>&1 || { cat "$work/log"; fail "update-debian"; }
[ "$(in_root dpkg-query -W -f '${Version}' less)" = 99999 ] || { cat "$work/log"; fail "update-debian has not installed the newer package"; }
[ -z "$(ls -d "$root"/run/basalt-update.* 2>/dev/null)" ] || fail "update-debian leaves its folder"
rm -rf "$root/etc/apt/keyrings/basalt.gpg" "$root/tmp/medium"

mkdir -p "$root/var/lib/basalt/store"
in_root dpkg --remove basalt basalt-guest-tools basalt-installer >"$work/log" 2>&1 || { cat "$work/log"; fail "remove"; }
grep -q 'purging the package removes it' "$work/log" || fail "removal does not say that state stays"
[ -d "$root/var/lib/basalt/store" ] && [ -f "$root/etc/basalt/basaltd.yaml" ] || fail "removal took state along"

in_root dpkg --purge basalt basalt-guest-tools basalt-installer >"$work/log" 2>&1 || { cat "$work/log"; fail "purge"; }
grep -q "disks with it" "$work/log" || fail "purge does not say what it removes"
for unit in $own_switch; do
	[ "$(in_root systemctl is-enabled $unit || true)" != masked ] || fail "purge left $unit masked"
done
left=$(cd "$root" && find . -xdev \( -path ./proc -o -path ./tmp/debs \) -prune -o -iname '*basalt*' -print)
# The medium's own configuration of other programs exists before.
left=$(cd "$root" && for f in $left; do [ -e "$base/$f" ] || echo "$f"; done)
[ -z "$left" ] || fail "purge left $left"
! grep -q basalt-worker "$root/etc/passwd" "$root/etc/group" || fail "purge left the user"
umount "$root/proc"
echo "packages: all right"
