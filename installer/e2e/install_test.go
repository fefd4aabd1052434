package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What the installer says: the start of each line, and when it begins to copy.
const (
	said    = "basalt-installer: "
	copying = "Copy the system"
)

// Everything an installation without questions needs. %s: disk's serial,
// node's name, SSH key.
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

// The same by DHCP: QEMU's server gives the same address.
const answersDHCP = `disk: {only: true}
erase: yes-everything-on-it
hostname: %[2]s
network: {mac: "52:54:00:ba:5a:17", address: dhcp}
cluster: {init: test}
root: {sshKeys: ["%[3]s"]}
console: {serial: ttyS0}
after: poweroff
`

// TestBIOS: a power cut in mid-installation leaves a disk that does not start;
// the installation then goes through on it, and the disk starts a node.
func TestBIOS(t *testing.T) {
	iso := prepared(t)
	c := newComputer(t, computer{name: "node1", serial: "BASALT0001"})
	disc := answersISO(t, c.answers(answersStatic))

	p := c.install(t, iso, disc)
	p.see(copying)
	before := c.written(t)
	p.poll("something is copied", func(context.Context) error {
		if now := c.written(t); now < before+64<<20 {
			return fmt.Errorf("%d MiB more on the disk", (now-before)>>20)
		}
		return nil
	})
	p.cut()
	t.Log("power cut while the system was copied")

	c.neverStarts(t)

	p = c.install(t, iso, disc)
	p.complete()
	c.serves(t)
}

// TestUEFI installs on an NVMe disk, with the network by DHCP and the answers
// on a USB stick's file system. Then every daemon is restarted and none of the
// node's machines notices.
func TestUEFI(t *testing.T) {
	iso := prepared(t)
	c := newComputer(t, computer{name: "node2", uefi: true, nvme: true, serial: "BASALT0002"})
	p := c.install(t, iso, answersFAT(t, c.answers(answersDHCP)))
	p.complete()
	p = c.serves(t)
	c.restartsAlone(t, p)
}

// neverStarts looks at a half-installed disk: the BIOS finds no code on it,
// and UEFI finds no loader and gives up.
func (c *computer) neverStarts(t *testing.T) {
	t.Helper()
	disk, err := os.Open(c.disk())
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	code := make([]byte, 440) // what is behind is the partition table
	if _, err := io.ReadFull(disk, code); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(code, make([]byte, len(code))) {
		t.Error("the BIOS would start a half-installed disk")
	}
	other := *c
	other.uefi, other.alone = true, true
	other.newFirmware(t)
	p := other.powerOn(t)
	p.see("EFI Internal Shell")
	if p.saw("GRUB") || p.saw("Linux version") {
		t.Error("UEFI starts a half-installed disk")
	}
	p.cut()
}

// install starts the medium as a person with a serial line would.
func (c *computer) install(t *testing.T, iso, answers string) *power {
	t.Helper()
	began := time.Now()
	p := c.powerOn(t, iso, answers)
	p.see("Install Basalt (serial console")
	p.press("s")
	p.see(said)
	t.Logf("from power on to the installer: %v", time.Since(began).Round(time.Second))
	t.Cleanup(func() { t.Logf("over %v after that medium was started", time.Since(began).Round(time.Second)) })
	return p
}

// complete waits for the end of the installation.
func (p *power) complete() {
	p.t.Helper()
	if p.see(said+"complete", said+"FAILED") != said+"complete" {
		p.t.Fatal("the installation has failed")
	}
	p.off()
}

func (c *computer) answers(form string) string { return fmt.Sprintf(form, c.serial, c.name, c.public) }

// answersISO and answersFAT make the second medium, as a disc and as a stick.
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
