package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

// basalt runs the command line on a node's own socket.
func basalt(t *testing.T, p *process, key string, args ...string) (out string, err error) {
	t.Helper()
	cmd := exec.Command(built.Program(t, "appliance/cmd/basalt"), append([]string{"--server", "unix:" + filepath.Join(p.dir, "run/api.sock")}, args...)...)
	cmd.Env = []string{"HOME=" + t.TempDir(), "BASALT_TOKEN=" + key}
	raw, err := cmd.CombinedOutput()
	return string(raw), err
}

// TestReplaceCA replaces the CA of three nodes, one of which is killed and stays away for a
// while, and then starts all of them again.
func TestReplaceCA(t *testing.T) {
	all, key := processes(t)
	ca := func() api.CertificateAuthority {
		t.Helper()
		var got api.CertificateAuthority
		until(t, "a node reports the CA", func() bool {
			c, err := all[0].api(t, key).Cluster(t.Context())
			if err == nil && c.CA != nil {
				got = *c.CA
			}
			return got.Fingerprint != ""
		})
		return got
	}
	before := ca()
	until(t, "the cluster has its level", func() bool {
		out, err := basalt(t, all[0], key, "cluster", "ca", "replace", "--wait")
		return err == nil || !strings.Contains(out, "not all nodes can replace") && fatal(t, out)
	})
	if out, err := basalt(t, all[0], key, "cluster", "ca", "replace"); err == nil || !strings.Contains(out, "already being replaced") {
		t.Errorf("second replacement: %v, %s", err, out)
	}
	held := ca()
	if held.Phase != api.CATrust || !held.Held || len(held.WaitingFor) > 0 || held.Fingerprint != before.Fingerprint {
		t.Errorf("CA after the first phase = %+v, want phase %s, held, waiting for nobody", held, api.CATrust)
	}
	if out, err := basalt(t, all[1], key, "cluster", "ca", "get", "--pem"); err != nil || out != held.Bundle || strings.Count(out, "BEGIN CERTIFICATE") != 2 {
		t.Errorf("basalt cluster ca get --pem: %v, %s; want both certificates", err, out)
	}
	all[2].kill()
	if _, err := all[0].api(t, key).ReplaceCA(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if got := ca(); got.Phase == "" || !slices.Contains(got.WaitingFor, all[2].name) {
		t.Errorf("CA while %s is away = %+v, want that it is waited for", all[2].name, got)
	}
	all[2].start(t)
	until(t, "the replacement is complete", func() bool { return ca().Phase == "" })
	after := ca()
	if after.Fingerprint != held.NextFingerprint {
		t.Errorf("fingerprint of the CA = %s, want %s", after.Fingerprint, held.NextFingerprint)
	}
	for _, p := range all {
		until(t, p.name+" trusts the new CA only", func() bool {
			raw, err := os.ReadFile(p.data("cluster/ca.pem"))
			return err == nil && string(raw) == after.Bundle && strings.Count(after.Bundle, "BEGIN CERTIFICATE") == 1
		})
	}
	for _, p := range all {
		p.kill()
	}
	for i, p := range all {
		p.start(t)
		if i > 0 { // two of three suffice
			write := fmt.Sprint("after", i)
			until(t, p.name+" writes", func() bool {
				_, err := client.Of[api.Flavor](p.api(t, key)).Create(t.Context(), api.Flavor{Meta: api.Meta{Name: write}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 1 << 30, RootBytes: 1 << 30}})
				return err == nil || api.CodeOf(err) == api.CodeExists
			})
		}
	}
	has(t, all[0], key, "after2")
	if out, err := basalt(t, all[0], key, "cluster", "ca", "cancel"); err == nil || !strings.Contains(out, "is not being replaced") {
		t.Errorf("cancel without a replacement: %v, %s", err, out)
	}
}

// fatal ends the test with the output of a command.
func fatal(t *testing.T, out string) bool {
	t.Helper()
	t.Fatal(out)
	return false
}
