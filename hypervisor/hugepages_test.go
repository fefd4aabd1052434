package hypervisor

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// TestRetargetKeepsHugePages checks that a machine migrates with its page
// size, which libvirt reports in another unit, and not to another one.
func TestRetargetKeepsHugePages(t *testing.T) {
	d := minimal()
	d.HugePages, d.AgentSocket = 2<<20, "/run/basalt/i/agent.sock"
	text, err := d.XML()
	if err != nil {
		t.Fatal(err)
	}
	runs := strings.Replace(text, `<page size="2" unit="MiB">`, `<page size="2048" unit="KiB">`, 1)
	if runs == text {
		t.Fatalf("the domain XML has no pages of 2 MiB:\n%s", text)
	}
	if _, err := Retarget(runs, d); err != nil {
		t.Errorf("Retarget to the same page size: %v", err)
	}
	d.HugePages = 0
	if _, err := Retarget(runs, d); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Retarget to ordinary pages = %v, want invalid", err)
	}
}
