package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

// Without basaltd it says so, and that is no failure.
func TestOnceWithoutBasaltd(t *testing.T) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--once", "--socket", filepath.Join(t.TempDir(), "none")})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "State") || !strings.Contains(out.String(), "does not answer") {
		t.Error(out.String())
	}
}

func TestVersion(t *testing.T) {
	var out bytes.Buffer
	cmd := command()
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"--version"})
	if err := cmd.Execute(); err != nil || !strings.Contains(out.String(), version) {
		t.Errorf("%q, %v", out.String(), err)
	}
}
