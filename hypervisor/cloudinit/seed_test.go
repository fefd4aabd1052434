package cloudinit

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/basalt-gpu/basalt/api"
)

const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHVuaXR0ZXN0a2V5dW5pdHRlc3RrZXl1bml0dGVzdA== me@here"

func seed() Seed {
	return Seed{Instance: "ins-4f9c2a7be01d", Hostname: "demo", SSHKeys: []string{key + "\n"}}
}

func read(t *testing.T, files fs.FS, name string) string {
	t.Helper()
	b, err := fs.ReadFile(files, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSeedFiles(t *testing.T) {
	s := seed()
	s.UserData = "#!/bin/sh\necho \"tenant: '$x'\"\n"
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, files, "user-data"); got != s.UserData {
		t.Errorf("user-data = %q, want %q", got, s.UserData)
	}
	var meta struct {
		Instance string   `json:"instance-id"`
		Host     string   `json:"local-hostname"`
		Keys     []string `json:"public-keys"`
	}
	if err := json.Unmarshal([]byte(read(t, files, "meta-data")), &meta); err != nil {
		t.Fatal(err)
	}
	if meta.Instance != "ins-4f9c2a7be01d" || meta.Host != "demo" || len(meta.Keys) != 1 || meta.Keys[0] != key {
		t.Errorf("meta-data = %+v, want instance ins-4f9c2a7be01d, host demo and the key %q", meta, key)
	}
	s.UserData = ""
	files, err = s.Files()
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, files, "user-data"); !strings.HasPrefix(got, "#cloud-config\n") {
		t.Errorf("user-data of an empty UserData = %q, want the prefix #cloud-config", got)
	}
}

func TestSeedNetwork(t *testing.T) {
	s := seed()
	files, err := s.Files()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fs.Stat(files, "network-config"); err == nil {
		t.Error("network-config exists for a guest without network cards, want none")
	}
	s.NICs = []NIC{{MAC: "06:00:00:00:00:01", IPv4: true, IPv6: true}, {MAC: "06:00:00:00:00:02", IPv6: true}}
	if files, err = s.Files(); err != nil {
		t.Fatal(err)
	}
	var got any
	if err := json.Unmarshal([]byte(read(t, files, "network-config")), &got); err != nil {
		t.Fatal(err)
	}
	domains := map[string]any{"use-domains": true}
	want := map[string]any{"version": 2.0, "ethernets": map[string]any{
		"eth0": map[string]any{"match": map[string]any{"macaddress": "06:00:00:00:00:01"}, "set-name": "eth0",
			"dhcp4": true, "dhcp4-overrides": domains, "dhcp6": true, "dhcp6-overrides": domains},
		"eth1": map[string]any{"match": map[string]any{"macaddress": "06:00:00:00:00:02"}, "set-name": "eth1",
			"dhcp4": false, "dhcp6": true, "dhcp6-overrides": domains},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("network-config = %v, want %v", got, want)
	}
}

func TestSeedValidate(t *testing.T) {
	for field, change := range map[string]func(*Seed){
		"id":             func(s *Seed) { s.Instance = "" },
		"meta.name":      func(s *Seed) { s.Hostname = "a\ninstance-id: other" },
		"spec.userData":  func(s *Seed) { s.UserData = strings.Repeat("x", MaxUserData+1) },
		"spec.sshKeys":   func(s *Seed) { s.SSHKeys = []string{key + "\ncommand=\"x\" " + key} },
		"spec.sshKeys ":  func(s *Seed) { s.SSHKeys = []string{"command=\"x\" " + key} },
		"spec.sshKeys  ": func(s *Seed) { s.SSHKeys = make([]string, MaxKeys+1) },
	} {
		s := seed()
		change(&s)
		var e *api.Error
		_, err := s.Files()
		if ok := asError(err, &e); !ok || e.Field != strings.TrimSpace(field) {
			t.Errorf("Files = %v, want an *api.Error with field %s", err, field)
		}
	}
}

func asError(err error, into **api.Error) bool {
	e, ok := err.(*api.Error) //nolint:errorlint // it must be the error itself
	*into = e
	return ok
}

// TestVendorDataIsAScript checks that a shell accepts the script and that it
// contains the unit unchanged.
func TestVendorDataIsAScript(t *testing.T) {
	text := VendorData()
	if !strings.HasPrefix(text, "#!/bin/sh\n") || !strings.Contains(text, "\n"+Unit+"BASALT_UNIT\n") || strings.Contains(Unit, "BASALT_UNIT") {
		t.Errorf("vendor-data is not a shell script that contains the unit:\n%s", text)
	}
	cmd := exec.Command("sh", "-n")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("syntax check of vendor-data: %v: %s", err, out)
	}
}

func TestWriteSeedIsRepeatable(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.iso"), filepath.Join(dir, "b.iso")
	for _, p := range []string{a, b, b} {
		if err := WriteSeed(p, seed()); err != nil {
			t.Fatal(err)
		}
	}
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil || !bytes.Equal(x, y) {
		t.Errorf("two discs of the same seed differ, or one cannot be read: %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 2 {
		t.Errorf("files in the directory: %v, want the two discs", entries)
	}
	if err := WriteSeed(filepath.Join(dir, "none", "x.iso"), seed()); err == nil {
		t.Error("WriteSeed into a missing directory = nil, want an error")
	}
}

func TestWriteToolsOncePerContent(t *testing.T) {
	dir := t.TempDir()
	tools := fstest.MapFS{"install.sh": {Data: []byte("#!/bin/sh\n"), Mode: 0o755}, "lib/l.so": {Data: []byte("1"), Mode: 0o755}}
	first, err := WriteTools(dir, tools)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(first)
	if err != nil {
		t.Fatal(err)
	}
	again, err := WriteTools(dir, tools)
	if err != nil || again != first {
		t.Errorf("WriteTools with the same tools = %s, %v, want %s", again, err, first)
	}
	if after, err := os.Stat(first); err != nil || !os.SameFile(before, after) {
		t.Errorf("the disc of unchanged tools was written again (%v)", err)
	}
	tools["lib/l.so"] = &fstest.MapFile{Data: []byte("2"), Mode: 0o755}
	if other, err := WriteTools(dir, tools); err != nil || other == first {
		t.Errorf("WriteTools with changed tools = %s, %v, want another path than %s", other, err, first)
	}
	tools["lib/l.so"].Mode = 0o644
	if other, err := WriteTools(dir, tools); err != nil || other == first {
		t.Errorf("WriteTools with a changed mode = %s, %v, want another path than %s", other, err, first)
	}
	if _, err := WriteTools(dir, fstest.MapFS{}); err == nil {
		t.Error("WriteTools without install.sh = nil, want an error")
	}
}
