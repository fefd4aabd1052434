#!/bin/sh
# Sets the machine up to use the installed files of Basalt's guest tools. The packages run it,
# and install.sh calls its functions. Run as root. Programs get links in /usr/local/bin, which
# is searched before the folders of a vendor's programs, and which belongs to no package.
#
# BASALT_CUDART=default setup   makes the loader find Basalt's libcudart before any other;
# BASALT_CUDART=beside setup    undoes that. Without it the setting is not changed. The same
#                               applies to BASALT_CUBLAS for libcublas and libcublasLt.
# BASALT_KERNEL=keep setup      prevents that a kernel without a driver for the vGPU is replaced;
# BASALT_KERNEL=replace setup   allows it, which is the default.
# BASALT_DOCKER=on setup        registers the container runtimes with Docker, as the first run
# BASALT_DOCKER=off setup       does, or removes them.
# setup --remove                undoes what setup did; it does not remove the files.
# DESTDIR=/mnt/root setup       sets up a mounted system, and loads and starts nothing.
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

# link FOLDER FILE…: creates links to the files in the folder.
link() {
	to=$1
	shift
	[ -d "$dest$to" ] || mkdir -p "$dest$to"
	ln -sf "$@" "$dest$to/"
}
# unlink FOLDER FILE…: removes these links, unless they lead elsewhere.
unlink() {
	to=$1
	shift
	for f; do
		[ "$(readlink "$dest$to/${f##*/}")" != "$f" ] || rm -f "$dest$to/${f##*/}"
	done
}
# files FOLDER: sets "found" to the files in the folder, with their paths on the machine.
files() {
	found=
	for f in "$dest$1"/*; do
		if [ -f "$f" ] || [ -h "$f" ]; then found="$found $1/${f##*/}"; fi
	done
}

# beside LIBRARY CHOICE FLAG: makes the loader find a library by default, or only with
# basalt-cuda-run FLAG.
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

# Sets "musl" if the tools are musl's. musl's loader does not read ld.so.conf, so the libraries need
# links in /usr/lib.
find_musl() {
	musl=
	[ ! -f "$dest$libdir/musl" ] || musl=yes
}

# docker on|off: registers the runtimes with Docker or removes them. Settings of the operator are
# kept, and an error does not stop the rest of the setup.
container=$libdir/bin/basalt-container
docker() {
	[ -z "$1" ] || [ -n "$musl" ] ||
		"$dest$container" docker "$1" --root "$dest/" --programs "$libdir/bin" 2>&1 | sed 's/^/basalt-tools: /'
}

# The services of the guest agent, for images without one, and of the replacement of the kernel. They
# need systemd.
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

# setup_check reports whether the vGPU can be used, by using it, which the host observes too. It
# writes the result to /run/basalt/check. It retries a failure for half a minute, because the host's
# GPU daemon may be restarting.
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
	[ -n "$choice" ] || [ -h "$dest/usr/local/bin/basalt-container" ] || choice=on # this is the first run
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
	modprobe virtio_gpu 2>/dev/null || true # setup_check reports a failure
	if command -v udevadm >/dev/null && [ -S /run/udev/control ]; then
		udevadm control --reload || true
		udevadm trigger --subsystem-match=drm || true
		udevadm settle --timeout=10 || true
	else
		chmod 666 /dev/dri/renderD* 2>/dev/null || true
	fi
	# Systems with SELinux need labels on the files.
	! command -v restorecon >/dev/null || restorecon -R "$libdir" /opt/basalt 2>/dev/null || true
	[ -n "$musl" ] || "$container" cdi 2>&1 | sed 's/^/basalt-tools: /'
}

# Not run if install.sh has sourced this file.
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
