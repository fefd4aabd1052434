#!/bin/sh
# Makes the machine use the files of Basalt's guest tools, once they are there: the
# packages run it, and install.sh calls its functions. Run as root. Programs get links
# in /usr/local/bin, which comes before a vendor's of the same name and belongs to no
# package.
#
# BASALT_CUDART=default setup   lets the loader find Basalt's libcudart before any other;
# BASALT_CUDART=beside setup    ends that. Without either it stays as it is, and the same
#                               with BASALT_CUBLAS for libcublas and libcublasLt.
# BASALT_KERNEL=keep setup      never replaces a kernel without a driver for the vGPU;
# BASALT_KERNEL=replace setup   does that again, as without either at first.
# BASALT_DOCKER=on setup        registers the runtimes of containers with Docker, which the
# BASALT_DOCKER=off setup       first run does, or takes them out.
# setup --remove                takes back what setup did; the files stay.
# DESTDIR=/mnt/root setup       in a mounted system: nothing is loaded or started then.
set -eu

dest=${DESTDIR:-}
libdir=/usr/lib/basalt
rundir=/run/basalt
say() { echo "basalt-tools: $*"; }
die() { echo "basalt-tools: $*" >&2; exit 1; }

check_choices() {
	for choice in "BASALT_CUDART ${BASALT_CUDART:-}" "BASALT_CUBLAS ${BASALT_CUBLAS:-}"; do
		case ${choice#* } in
		'' | default | beside) ;;
		*) die "${choice% *} is ${choice#* }, want default or beside" ;;
		esac
	done
	case ${BASALT_KERNEL:-} in
	'' | keep | replace) ;;
	*) die "BASALT_KERNEL is $BASALT_KERNEL, want keep or replace" ;;
	esac
	case ${BASALT_DOCKER:-} in
	'' | on | off) ;;
	*) die "BASALT_DOCKER is $BASALT_DOCKER, want on or off" ;;
	esac
}

# link FOLDER FILE…: links to the files in the folder.
link() {
	to=$1
	shift
	[ -d "$dest$to" ] || mkdir -p "$dest$to"
	ln -sf "$@" "$dest$to/"
}
# unlink FOLDER FILE…: takes them away, where they are ours.
unlink() {
	to=$1
	shift
	for f; do
		[ "$(readlink "$dest$to/${f##*/}")" != "$f" ] || rm -f "$dest$to/${f##*/}"
	done
}
# files FOLDER: sets "found" to what is there, as the machine will see it.
files() {
	found=
	for f in "$dest$1"/*; do
		if [ -f "$f" ] || [ -h "$f" ]; then found="$found $1/${f##*/}"; fi
	done
}

# beside LIBRARY CHOICE FLAG: the loader finds a library by itself, or basalt-cuda-run FLAG.
beside() {
	conf=/etc/ld.so.conf.d/00-basalt-$1.conf
	files "$libdir/$1"
	case $2 in
	default)
		if [ -n "$musl" ]; then link /usr/lib $found; else
			printf '%s\n' "$libdir/$1" >"$dest$conf.new"
			mv -f "$dest$conf.new" "$dest$conf"
		fi ;;
	beside) if [ -n "$musl" ]; then unlink /usr/lib $found; else rm -f "$dest$conf"; fi ;;
	esac
	set -- "$1" "$3" ${found##* }
	if [ -f "$dest$conf" ] || { [ -n "$musl" ] && [ -h "$dest/usr/lib/${3##*/}" ]; }; then
		say "lib$1 in $libdir/$1, the machine's default"
	else
		say "lib$1 in $libdir/$1, used by basalt-cuda-run$2 PROGRAM"
	fi
}

# The loader of musl reads no ld.so.conf: there the libraries have links in /usr/lib.
find_musl() {
	musl=
	[ ! -f "$dest$libdir/musl" ] || musl=yes
}

# docker on|off: what somebody else has decided there stays; an error is no reason to do
# without the rest.
container=$libdir/bin/basalt-container
docker() {
	[ -z "$1" ] || [ -n "$musl" ] ||
		"$dest$container" docker "$1" --root "$dest/" --programs "$libdir/bin" 2>&1 | sed 's/^/basalt-tools: /'
}

# The guest agent, where the image has none, and what replaces the kernel, where that is
# asked for: with systemd alone.
units=/etc/systemd/system
service() {
	mkdir -p "$dest$units"
	printf '%s\n' "$2" >"$dest$units/$1.new"
	mv -f "$dest$units/$1.new" "$dest$units/$1"
}
agent_of_image() {
	for f in /usr/sbin/qemu-ga /usr/bin/qemu-ga /usr/local/bin/qemu-ga /bin/qemu-ga; do
		[ ! -e "$dest$f" ] || return 0
	done
	return 1
}
agent_unit="[Unit]
Description=Guest agent of Basalt's guest tools
DefaultDependencies=no
BindsTo=dev-virtio\\x2dports-org.qemu.guest_agent.0.device
After=local-fs.target dev-virtio\\x2dports-org.qemu.guest_agent.0.device
Conflicts=shutdown.target
Before=shutdown.target
ConditionPathExists=!/usr/sbin/qemu-ga
ConditionPathExists=!/usr/bin/qemu-ga

[Service]
ExecStart=$libdir/bin/basalt-guest-agent
Restart=on-failure
RestartSec=5

[Install]
WantedBy=dev-virtio\\x2dports-org.qemu.guest_agent.0.device"
kernel_unit="[Unit]
Description=A kernel with a driver for the vGPU
Wants=network-online.target
After=network-online.target cloud-final.service

[Service]
Type=oneshot
ExecStart=$libdir/kernel
TimeoutStartSec=3600"

setup_agent() {
	[ -d "$dest$units" ] || return 0
	if agent_of_image; then
		say "the image has a guest agent"
		return
	fi
	service basalt-guest-agent.service "$agent_unit"
	say "the image has no guest agent: basalt-guest-agent serves the host"
	if [ -n "$dest" ]; then
		link "$units/dev-virtio\\x2dports-org.qemu.guest_agent.0.device.wants" "$units/basalt-guest-agent.service"
	elif [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl -q enable basalt-guest-agent.service
		systemctl --no-block start basalt-guest-agent.service || say "note: basalt-guest-agent.service does not start"
	fi
}

setup_kernel() {
	case ${BASALT_KERNEL:-} in
	keep) mkdir -p "$dest/etc/basalt"; : >"$dest/etc/basalt/keep-kernel" ;;
	replace) rm -f "$dest/etc/basalt/keep-kernel" ;;
	esac
}

# setup_check says whether the vGPU can be used, by using it: its host sees that too. What
# it found stands in /run/basalt/check. A failure is looked at again for half a minute: the
# host's GPU daemon may be restarting just then, and nobody else opens the vGPU for now.
check_tries=7
check_pause=5 # seconds
note_check() {
	mkdir -p "$rundir"
	echo "$1" >"$rundir/check"
}
setup_check() {
	rm -f "$rundir/check"
	report=$(sh "$libdir/report")
	case $report in
	*driver=bound*) ;;
	*device=vgpu*)
		say "NOT READY: the kernel has not started a driver for the vGPU:"
		printf '%s\n' "$report" | sed '1d; s/^/basalt-tools:   /'
		if [ -d /run/systemd/system ]; then
			service basalt-vgpu-kernel.service "$kernel_unit"
			systemctl daemon-reload
			systemctl --no-block start basalt-vgpu-kernel.service || say "note: basalt-vgpu-kernel.service does not start"
		fi
		return 0 ;;
	*)
		say "this machine has no vGPU"
		return 0 ;;
	esac
	tries=$check_tries
	until said=$("$libdir/bin/nvidia-smi" -L 2>&1); do
		tries=$((tries - 1))
		case $said in
		*"version mismatch"*) why=mismatch tries=0 ;;
		*) why=failed ;;
		esac
		if [ "$tries" -le 0 ]; then
			note_check "$why"
			say "NOT READY: $said"
			return 0
		fi
		sleep "$check_pause"
	done
	note_check ok
	say "READY: $said"
}

setup_remove() {
	if [ -f "$dest$units/basalt-guest-agent.service" ] || [ -f "$dest$units/basalt-vgpu-kernel.service" ]; then
		if [ -z "$dest" ] && [ -d /run/systemd/system ]; then
			systemctl -q disable basalt-guest-agent.service 2>/dev/null || true
			systemctl --no-block stop basalt-guest-agent.service || true
		fi
		unlink "$units/dev-virtio\\x2dports-org.qemu.guest_agent.0.device.wants" "$units/basalt-guest-agent.service"
		rmdir "$dest$units/dev-virtio\\x2dports-org.qemu.guest_agent.0.device.wants" 2>/dev/null || true
		rm -f "$dest$units/basalt-guest-agent.service" "$dest$units/basalt-vgpu-kernel.service"
	fi
	find_musl
	docker off
	[ -n "$dest" ] || rm -rf /run/cdi/basalt.json /run/basalt
	files "$libdir/bin"
	unlink /usr/local/bin $found
	if [ -n "$musl" ]; then
		for d in "$libdir" "$libdir/cudart" "$libdir/cublas"; do
			files "$d"
			unlink /usr/lib $found
		done
	fi
	rm -f "$dest/etc/ld.so.conf.d/00-basalt-cudart.conf" "$dest/etc/ld.so.conf.d/00-basalt-cublas.conf"
}

setup_machine() {
	find_musl
	choice=${BASALT_DOCKER:-}
	[ -n "$choice" ] || [ -h "$dest/usr/local/bin/basalt-container" ] || choice=on # for the first time
	files "$libdir/bin"
	link /usr/local/bin $found
	say "nvidia-smi in /usr/local/bin"
	[ -z "$musl" ] || link /usr/lib "$libdir/libcuda.so.1" "$libdir/libnvidia-ml.so.1"
	beside cudart "${BASALT_CUDART:-}" ""
	beside cublas "${BASALT_CUBLAS:-}" " --cublas"
	docker "$choice"
	setup_agent
	setup_kernel
	say "every user may open the vGPU (udev rule); virtio_gpu is loaded at boot"

	if [ -n "$dest" ]; then
		[ -n "$musl" ] || ! command -v ldconfig >/dev/null || ldconfig -r "$dest" 2>/dev/null || true
		return
	fi
	[ -n "$musl" ] || ldconfig
	modprobe virtio_gpu 2>/dev/null || true # setup_check says what is missing
	if command -v udevadm >/dev/null && [ -S /run/udev/control ]; then
		udevadm control --reload || true
		udevadm trigger --subsystem-match=drm || true
		udevadm settle --timeout=10 || true
	else
		chmod 666 /dev/dri/renderD* 2>/dev/null || true
	fi
	# SELinux systems want their labels.
	! command -v restorecon >/dev/null || restorecon -R "$libdir" /opt/basalt 2>/dev/null || true
	[ -n "$musl" ] || "$container" cdi 2>&1 | sed 's/^/basalt-tools: /'
}

# Not where install.sh has read this.
if [ "${0##*/}" = setup ]; then
	check_choices
	case ${1:-} in
	'')
		setup_machine
		[ -n "$dest" ] || setup_check ;;
	--remove) setup_remove ;;
	*) die "unknown argument $1, want --remove or none" ;;
	esac
fi
