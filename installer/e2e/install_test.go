package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
)

// Output of the installer: the prefix of each line, and while it copies.
const (
	said    = "basalt-installer: "
	copying = "Copy the system"
	noFile  = "error: file" // of the loader, if a file is missing
)

// middle are outputs during copying, which are at most half a second apart.
var middle = []string{copying + ": 30 %", copying + ": 40 %", copying + ": 50 %", copying + ": 60 %"}

// The answers of an unattended installation. %s: disk's serial, node's name, SSH key.
const answersStatic = `disk: {serial: %[1]s}
erase: %[1]s
hostname: %[2]s
network:
  mac: 52:54:00:ba:5a:17
  address: 10.0.2.15/24
  gateway: 10.0.2.2
  dns: [10.0.2.3]
cluster: {init: test}
root: {sshKeys: ["%[3]s"]}
console: {serial: ttyS0}
after: poweroff
`

// The same with DHCP: QEMU's server assigns the same address. External networks share the
// only card.
const answersDHCP = `disk: {only: true}
erase: yes-everything-on-it
hostname: %[2]s
network: {mac: "52:54:00:ba:5a:17", address: dhcp, external: true}
cluster: {init: test}
root: {sshKeys: ["%[3]s"]}
console: {serial: ttyS0}
after: poweroff
`

// TestInstall installs the medium on an empty computer with UEFI and an NVMe disk, with
// the answers on a stick and an address by DHCP. A copy of the disk from the middle of
// the installation, as after a power cut, must not start. The installed disk starts a
// node, whose daemons can be restarted. A BIOS starts the same medium and the same disk.
func TestInstall(t *testing.T) {
	t.Parallel() // TestPackages needs no turn
	iso := prepared(t)
	c := newComputer(t, "node1", "BASALT0001")
	c.uefi, c.nvme = true, true
	p := c.install(t, iso, answersFAT(t, c.answers(answersDHCP)))
	p.see(middle...)
	c.copied(t).neverStarts(t)
	p.complete()

	p = c.serves(t)
	c.sharesCard(t, p)
	c.restartsAlone(t, p)
	p.cut()

	c.uefi, c.nvme = false, false
	c.loads(t, iso)
}

// TestPowerCuts is the long test: the life of one disk in computers of both kinds:
//
//	BIOS, virtio disk, answers on a disc:      the power goes off while the system is copied
//	either:                                    the half-installed disk does not start
//	BIOS, the same answers, a fixed address:   the installation goes through on that disk
//	BIOS:                                      the disk starts a node; the power goes off
//	UEFI, NVMe:                                the disk starts the same node
func TestPowerCuts(t *testing.T) {
	layer.NeedLong(t, "installer/e2e TestInstall")
	iso := prepared(t)
	c := newComputer(t, "node1", "BASALT0001")
	answers := answersISO(t, c.answers(answersStatic))

	p := c.install(t, iso, answers)
	p.see(middle...)
	p.cut()
	c.neverStarts(t)

	c.install(t, iso, answers).complete()
	p = c.serves(t)
	node := c.ssh(t, identity)
	p.cut()

	c.uefi, c.nvme = true, true
	p = c.serves(t)
	if now := c.ssh(t, identity); now != node {
		t.Errorf("identity of the node after a power cut = %s, want %s", now, node)
	}
	c.restartsAlone(t, p)
}

// loads starts the medium, whose menu starts the disk, whose menu starts a kernel with
// verbose output, until it has mounted its root file system: the rest does not depend
// on the firmware.
func (c *computer) loads(t *testing.T, iso string) {
	t.Helper()
	began := time.Now()
	p := c.powerOn(t, iso)
	p.see("Install Basalt (serial console")
	p.press("d")
	p.see("one-user rescue mode")
	p.press("\x0e\r") // Ctrl-N: the second entry
	p.see("EXT4-fs (vda3): mounted filesystem")
	p.cut()
	t.Logf("%s: from power on to the disk's root: %v, %v of processors", c.firmware(), time.Since(began).Round(time.Second), p.spent())
}

// copied returns another computer with a copy of the current disk.
func (c *computer) copied(t *testing.T) *computer {
	t.Helper()
	other := newComputer(t, c.name, c.serial)
	run(t, "cp", "--sparse=always", c.disk(), other.disk())
	return other
}

// neverStarts checks that a half-installed disk prints a message on a BIOS, which
// continues with the next device, and has no loader for UEFI.
func (c *computer) neverStarts(t *testing.T) {
	t.Helper()
	other := *c
	other.alone = true
	for _, other.uefi = range []bool{false, true} {
		refusal := []string{"the installation on this disk has not ended", "No bootable device"}
		if other.uefi {
			refusal = []string{"EFI Internal Shell"}
		}
		p := other.powerOn(t)
		for _, words := range refusal {
			p.see(words)
		}
		if p.saw("GRUB") || p.saw("Linux version") {
			t.Errorf("a half-installed disk starts (UEFI: %v), want it not to", other.uefi)
		}
		p.cut()
	}
}

// install starts the medium as a person at a serial line would.
func (c *computer) install(t *testing.T, iso, answers string) *power {
	t.Helper()
	began := time.Now()
	p := c.powerOn(t, iso, answers)
	p.see("Install Basalt (serial console")
	p.press("s")
	if words := p.see(said, noFile); words != said {
		t.Fatalf("the loader prints %q, want %q: the medium lacks files that its menu names", words, said)
	}
	t.Logf("%s: from power on to the installer: %v, %v of processors", c.firmware(), time.Since(began).Round(time.Second), p.spent())
	return p
}

// complete waits for the end of the installation.
func (p *power) complete() {
	p.t.Helper()
	began := time.Now()
	if p.see(said+"complete", said+"FAILED") != said+"complete" {
		p.t.Fatal("the installation printed FAILED, want complete")
	}
	p.off()
	p.t.Logf("installed and off after %v, %v of processors", time.Since(began).Round(time.Second), p.spent())
}

func (c *computer) answers(form string) string { return fmt.Sprintf(form, c.serial, c.name, c.public) }

// answersISO and answersFAT create the second medium, as a disc and as a stick.
func answersISO(t *testing.T, text string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "answers.iso")
	run(t, "xorriso", "-as", "mkisofs", "-quiet", "-r", "-J", "-V", "BASALT-ANS", "-o", out, filepath.Dir(answersFile(t, text)))
	return out
}

func answersFAT(t *testing.T, text string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "answers.img")
	run(t, "truncate", "-s", "4M", out)
	run(t, "mkfs.vfat", "-n", "BASALT-ANS", out)
	run(t, "mcopy", "-i", out, answersFile(t, text), "::answers.yaml")
	return out
}

func answersFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "answers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
