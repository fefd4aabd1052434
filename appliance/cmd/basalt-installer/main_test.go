package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/installer/install"
	"github.com/basalt-gpu/basalt/installer/machine"
	"golang.org/x/sys/unix"
)

const answerFiles = "../../../installer/answers/testdata/"

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		stdin string
		says  []string
		err   error
	}{
		"full.yaml":     {"", []string{"full.yaml is valid: node1 makes the cluster basalt"}, nil},
		"mistakes.yaml": {"", []string{"mistakes.yaml: line 2, column 3: disk.seriall: unknown field", "did you mean serial?", "20 mistake(s)"}, errSaid},
		"-":             {"disk: x", []string{"-: line 1, column 7: disk:"}, errSaid},
	} {
		path := name
		if name != "-" {
			path = answerFiles + name
		}
		var out bytes.Buffer
		err := validate(path, strings.NewReader(c.stdin), &out)
		if !errors.Is(err, c.err) {
			t.Errorf("validate(%s): error %v, want %v", name, err, c.err)
		}
		for _, s := range c.says {
			if !strings.Contains(out.String(), s) {
				t.Errorf("validate(%s) does not print %q:\n%s", name, s, out.String())
			}
		}
	}
	if err := validate(answerFiles+"none.yaml", nil, &bytes.Buffer{}); err == nil || errors.Is(err, errSaid) {
		t.Errorf("validate of a missing file: error %v, want one that is not reported yet", err)
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), version) {
		t.Errorf("--version printed %q, error %v, want %s", out.String(), err, version)
	}
}

func TestInventory(t *testing.T) {
	var out bytes.Buffer
	inventory(&out, []machine.Disk{{Path: "/dev/sda", Serial: "A", ByID: []string{"ata-A"}, Contents: []string{"sda1 ext4"}, Refusal: &machine.Refusal{Reason: "small", Hint: "larger"}}},
		[]machine.NIC{{Name: "eno1", MAC: "52:54:00:00:00:01"}})
	for _, s := range []string{"/dev/sda", "ata-A", "sda1 ext4", "cannot be chosen: small (larger)", "eno1"} {
		if !strings.Contains(out.String(), s) {
			t.Errorf("inventory does not print %q:\n%s", s, out.String())
		}
	}
}

func TestOneInstallationAtATime(t *testing.T) {
	dir := t.TempDir()
	sys, err := newSystem("", filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := sys.Install(context.Background(), install.Request{}, nil); api.CodeOf(err) != api.CodeConflict {
		t.Errorf("Install while another installation runs: error %v, want Conflict", err)
	}
}

func TestLogTail(t *testing.T) {
	sys, err := newSystem("", filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	if sys.Log() != "" {
		t.Errorf("log of a new system = %q, want none", sys.Log())
	}
	for range 3 {
		if _, err := sys.log.Write(append(bytes.Repeat([]byte("x"), 40<<10), '\n')); err != nil {
			t.Fatal(err)
		}
	}
	if got := sys.Log(); len(got) != 64<<10 || !strings.HasSuffix(got, "x\n") {
		t.Errorf("length of the log's tail = %d bytes, want %d and the end of the log", len(got), 64<<10)
	}
}

func TestUnpackedBytes(t *testing.T) {
	image := filepath.Join(t.TempDir(), "filesystem.squashfs")
	if n := unpackedBytes(image); n != 0 {
		t.Errorf("unpackedBytes without a size file = %d, want 0", n)
	}
	if err := os.WriteFile(strings.TrimSuffix(image, ".squashfs")+".size", []byte("1234\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n := unpackedBytes(image); n != 1234 {
		t.Errorf("unpackedBytes = %d, want 1234", n)
	}
}
