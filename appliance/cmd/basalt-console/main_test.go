package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// TestOnceWithoutBasaltd: without basaltd, the state reports that it does not answer, which is not an
// error.
func TestOnceWithoutBasaltd(t *testing.T) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--once", "--socket", filepath.Join(t.TempDir(), "none")})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "State") || !strings.Contains(out.String(), "does not answer") {
		t.Errorf("output without basaltd = %q, want State and \"does not answer\"", out.String())
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
