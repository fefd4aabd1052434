package hypervisor

import (
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// A machine moves with the pages that it has, which libvirt gives in another unit, and
// with no others.
func TestRetargetKeepsHugePages(t *testing.T) {
	d := minimal()
	d.HugePages, d.AgentSocket = 2<<20, "/run/basalt/i/agent.sock"
	text, err := d.XML()
	if err != nil {
		t.Fatal(err)
	}
	runs := strings.Replace(text, `<page size="2" unit="MiB">`, `<page size="2048" unit="KiB">`, 1)
	if runs == text {
		t.Fatal("the XML has no pages of 2 MiB")
	}
	if _, err := Retarget(runs, d); err != nil {
		t.Errorf("to the same pages: %v", err)
	}
	d.HugePages = 0
	if _, err := Retarget(runs, d); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("to ordinary pages: %v, want invalid", err)
	}
}
