#!/bin/busybox sh
# The tiny test guest's init. See build.sh.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
ip link set lo up
exec </dev/console >/dev/console 2>&1
while read -r m; do
	insmod "/modules/$m" || echo "testguest: insmod $m failed"
done </modules/order
echo "testguest: up in $(cut -d' ' -f1 /proc/uptime) s"
if [ -x /run.sh ]; then
	/run.sh
	echo "testguest: exit $?"
fi
sync
poweroff -f
