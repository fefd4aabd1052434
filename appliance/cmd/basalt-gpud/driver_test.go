package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/node/gpudriver"
)

func TestParseDriver(t *testing.T) {
	o, err := parseDriver("install", []string{"--accept-nvidia-license", "--from", "/a", "--from", "/b", "--kernel", "6.1", "--without-card", "--once", "/f"})
	if err != nil || !o.AcceptLicense || !slices.Equal(o.From, []string{"/a", "/b"}) || o.kernel != "6.1" || !o.WithoutCard || o.KeyEnrolled || o.once != "/f" {
		t.Errorf("options = %+v, error %v, want those given", o, err)
	}
	for want, args := range map[string][]string{
		"unexpected argument":  {"install", "/packages"},
		"driver status: flag":  {"status", "--accept-nvidia-license"},
		"want install or":      {"remove"},
		"driver install: flag": {"install", "--form", "/a"},
	} {
		if err := runDriver(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("driver %q: error %v, want %q", args, err, want)
		}
	}
	if err := runDriver(t.Context(), []string{"install", "--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("driver install --help: error %v, want flag.ErrHelp", err)
	}
}

func TestExitStatus(t *testing.T) {
	if got := exitStatus(errors.New("no archive")); got != 1 {
		t.Errorf("exit status of an error = %d, want 1", got)
	}
	if got := exitStatus(fmt.Errorf("install the packages: %w", &gpudriver.Refusal{Reason: "headers"})); got != 2 {
		t.Errorf("exit status of a refusal = %d, want 2, with which systemd does not restart it", got)
	}
}

// TestForgetRequest checks that a request of the installer is performed once.
func TestForgetRequest(t *testing.T) {
	root := t.TempDir()
	request, kept := filepath.Join(root, "gpu-driver"), filepath.Join(root, gpudriver.KeptStick)
	if err := errors.Join(os.WriteFile(request, nil, 0o600), os.MkdirAll(kept, 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := forgetRequest(root, ""); err != nil {
		t.Errorf("without a request: error %v, want none", err)
	}
	if _, err := os.Stat(kept); err != nil {
		t.Errorf("packages without a request: error %v, want them kept", err)
	}
	if err := forgetRequest(root, request); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{request, kept} {
		if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: error %v, want it removed", name, err)
		}
	}
}
