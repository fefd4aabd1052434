package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What the installer says when it begins to copy the system.
const copying = "Copy the system"

// Everything an installation without questions needs. %s: disk's serial, node's name.
const answersStatic = `disk: {serial: %[1]s}
erase: %[1]s
hostname: %[2]s
network:
  mac: 52:54:00:ba:5a:17
  address: 10.0.2.15/24
  gateway: 10.0.2.2
  dns: [10.0.2.3]
cluster: {init: test}
root: {password: correct horse battery}
console: {serial: ttyS0}
after: poweroff
`

// The same by DHCP: QEMU's server gives the same address.
const answersDHCP = `disk: {only: true}
erase: yes-everything-on-it
hostname: %[2]s
network: {mac: "52:54:00:ba:5a:17", address: dhcp}
cluster: {init: test}
root: {password: correct horse battery}
console: {serial: ttyS0}
after: poweroff
`

// TestBIOS: a power cut in mid-installation leaves a disk that does not start;
// the installation then goes through on it, and the disk starts a node.
func TestBIOS(t *testing.T) {
	iso := prepared(t)
	c := newComputer(t, computer{serial: "BASALT0001"})
	disc := answersISO(t, fmt.Sprintf(answersStatic, c.serial, "node1"))

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

	p = c.powerOn(t)
	p.see("No bootable device")
	if p.saw("GRUB") || p.saw("Linux version") {
		t.Fatal("a half-installed disk starts something")
	}
	p.cut()

	p = c.install(t, iso, disc)
	p.off()
	c.serves(t, "node1")
}

// TestUEFI installs on an NVMe disk, with the network by DHCP and the answers
// on a USB stick's file system.
func TestUEFI(t *testing.T) {
	iso := prepared(t)
	c := newComputer(t, computer{uefi: true, nvme: true, serial: "BASALT0002"})
	p := c.install(t, iso, answersFAT(t, fmt.Sprintf(answersDHCP, c.serial, "node2")))
	p.off()
	c.serves(t, "node2")
}

// install starts the medium as a person with a serial line would.
func (c *computer) install(t *testing.T, iso, answers string) *power {
	t.Helper()
	began := time.Now()
	t.Cleanup(func() { t.Logf("since the medium was started: %v", time.Since(began).Round(time.Second)) })
	p := c.powerOn(t, iso, answers)
	p.see("Install Basalt (serial console")
	p.press("s")
	return p
}

// serves starts the disk and waits for the node's API and SSH.
func (c *computer) serves(t *testing.T, name string) {
	t.Helper()
	began := time.Now()
	p := c.powerOn(t)
	// Its certificate is its cluster's own, which nobody here knows.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}}}
	p.poll("the API", func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/v1/healthz", c.apiFwd), nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
		if err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s %w", resp.Status, body, err)
		}
		if certs := resp.TLS.PeerCertificates; len(certs) == 0 || certs[0].VerifyHostname(name) != nil {
			return fmt.Errorf("the certificate is not %s's", name)
		}
		return nil
	})
	t.Logf("from power on to the API: %v", time.Since(began).Round(time.Second))
	p.poll("SSH", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", c.sshFwd))
		if err != nil {
			return err
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil && !strings.HasPrefix(line, "SSH-2.0-") {
			err = fmt.Errorf("it says %q", line)
		}
		return err
	})
	p.see(name + " login:")
	p.cut()
}

// answersISO and answersFAT make the second medium, as a disc and as a stick.
func answersISO(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, "answers.img")
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
