package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
)

// The answers of an installation on two disks.
const answersMirror = `disk: {serial: %[1]s}
mirror: {serial: BASALT0002}
erase: [%[1]s, BASALT0002]
hostname: %[2]s
network: {mac: "52:54:00:ba:5a:17", address: dhcp}
storage: {fileSystems: {root: 8GiB, state: 4GiB, logs: 1GiB}}
cluster: {init: test}
root: {sshKeys: ["%[3]s"]}
console: {serial: ttyS0}
after: poweroff
`

// TestMirror is the long test of two disks that mirror each other, of different sizes:
//
//	UEFI, both disks:         the installation, and a node with separate file systems; an
//	                          update of GRUB reaches both; its firewall
//	UEFI, without the first:  the same node starts from the second, and reports that its
//	                          mirror lacks a disk
//	UEFI, an empty first:     a command fills it, and the mirror is whole
//	BIOS, only the new one:   the node's boot loader and root file system are found
func TestMirror(t *testing.T) {
	layer.NeedLong(t, "installer/e2e TestInstall")
	iso := prepared(t)
	c := newComputer(t, "node1", "BASALT0001")
	c.uefi, c.mirror = true, true
	run(t, "truncate", "-s", "25G", c.disk())
	run(t, "truncate", "-s", "24G", c.secondDisk())
	c.install(t, iso, answersFAT(t, c.answers(answersMirror))).complete()

	p := c.serves(t)
	c.separate(t)
	node := c.ssh(t, identity)
	c.mirrorIs(t, p, `"id": ?"mirror"[^}]*"state": ?"ok"`)
	c.bootLoaders(t)
	c.filters(t, p)
	p.cut()

	c.without = true
	p = c.serves(t)
	if now := c.ssh(t, identity); now != node {
		t.Errorf("identity of the node without its first disk = %s, want %s", now, node)
	}
	c.mirrorIs(t, p, `"id": ?"mirror"[^}]*"state": ?"failed"`)
	c.ssh(t, "poweroff") // a resync may be interrupted by it
	p.off()

	c.without = false
	run(t, "rm", c.disk())
	run(t, "truncate", "-s", "26G", c.disk())
	p = c.serves(t)
	t.Logf("basaltd mirror replace:\n%s", c.ssh(t, "basaltd mirror replace /dev/vda && basaltd mirror status"))
	p.poll("the whole mirror", func(ctx context.Context) error {
		out, err := c.try(ctx, "cat /sys/block/md*/md/degraded | sort -u")
		if err == nil && out != "0" {
			err = errors.New(out)
		}
		return err
	})
	c.bootLoadersAre(t, current)
	c.ssh(t, "poweroff")
	p.off()

	c.uefi, c.mirror = false, false
	p = c.powerOn(t)
	p.see("one-user rescue mode")
	p.press("\x0e\r")
	p.see("EXT4-fs (md") // md127, whichever number it has
	p.cut()
}

// current is what a node reports of boot loaders that are current.
const current = "vda is current\nvdb is current"

// bootLoadersAre checks what the node reports of its boot loaders.
func (c *computer) bootLoadersAre(t *testing.T, want string) {
	t.Helper()
	if got := c.ssh(t, "basaltd boot-loader status"); got != want {
		t.Errorf("boot loaders:\n%s\nwant:\n%s", got, want)
	}
}

// bootLoaders checks that the installer's boot loaders are found current, that damage is
// found, and that dpkg has both disks updated after GRUB's files have changed.
func (c *computer) bootLoaders(t *testing.T) {
	t.Helper()
	c.bootLoadersAre(t, current)
	c.ssh(t, "dd if=/dev/zero of=/dev/vdb1 bs=4096 count=8 conv=fsync status=none; echo '# newer' >>/usr/lib/grub/x86_64-efi/modinfo.sh")
	c.bootLoadersAre(t, "vda has boot loaders of an earlier GRUB than is installed\nvdb has another boot loader for BIOS than was installed")
	t.Logf("triggers of dpkg:\n%s", c.ssh(t, "dpkg-trigger --by-package=grub-efi-amd64-bin /usr/lib/grub && dpkg --triggers-only --pending"))
	c.bootLoadersAre(t, current)
}

// secondDisk is the disk that mirrors the first.
func (c *computer) secondDisk() string { return filepath.Join(c.dir, "disk2.raw") }

// separate checks that state, logs and volumes are in file systems of their own, each
// on an array.
func (c *computer) separate(t *testing.T) {
	t.Helper()
	devices := map[string]string{}
	for _, at := range []string{"/", "/var/lib/basalt", "/var/log", "/var/lib/basalt/storage"} {
		dev := c.ssh(t, "findmnt -n -v -o SOURCE -T "+at)
		if !strings.HasPrefix(dev, "/dev/md") {
			t.Errorf("device of %s = %s, want an array", at, dev)
		}
		if other := devices[dev]; other != "" {
			t.Errorf("%s and %s are both on %s, want separate file systems", at, other, dev)
		}
		devices[dev] = at
	}
	log, logs := c.ssh(t, "stat -c %d /var/lib/basalt/log"), c.ssh(t, "stat -c %d /var/log")
	if log != logs {
		t.Errorf("device of /var/lib/basalt/log = %s, want %s as /var/log", log, logs)
	}
}

// mirrorIs waits until the node reports that state of its mirror.
func (c *computer) mirrorIs(t *testing.T, p *power, want string) {
	t.Helper()
	began := time.Now()
	p.poll("the state of the mirror", c.reports(c.ssh(t, "cat /var/lib/basalt/operator.key"), want))
	t.Logf("the node reports %s after %v", want, time.Since(began).Round(time.Second))
}
