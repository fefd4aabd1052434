package cli_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/cli"
)

// TestHardwareOfThisMachine verifies that a machine is checked without a server, key or
// configuration.
func TestHardwareOfThisMachine(t *testing.T) {
	checks := []api.HardwareCheck{
		{ID: api.HardwareFirmware, State: api.HardwareOK, Found: "UEFI"},
		{ID: api.HardwareBMC, State: api.HardwareWarning, Found: "no /dev/ipmi0", Meaning: "Sensors cannot be read.", Advice: "modprobe ipmi_si"},
	}
	run := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		a := &cli.App{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }, Now: time.Now,
			Hardware: func(context.Context) []api.HardwareCheck { return checks }}
		code := a.Run(t.Context(), append([]string{"doctor", "hardware"}, args...))
		return code, out.String() + errs.String()
	}
	want := "CHECK      STATE     FOUND\nfirmware   ok        UEFI\nbmc        warning   no /dev/ipmi0\n\nbmc: no /dev/ipmi0\n  Sensors cannot be read.\n  modprobe ipmi_si\n"
	if code, out := run(); code != 0 || out != want {
		t.Errorf("basalt doctor hardware: code %d and\n%swant 0 and\n%s", code, out, want)
	}
	checks[1].State = api.HardwareFailed
	if code, out := run("-o", "json"); code != 1 || !strings.Contains(out, `"state": "failed"`) || strings.Contains(out, `"node"`) {
		t.Errorf("basalt doctor hardware -o json with a failed check: code %d, want 1, and output with the state failed and without node, got\n%s", code, out)
	}
	if code, out := run("--all"); code == 0 || !strings.Contains(out, "error:") {
		t.Errorf("basalt doctor hardware --all without a server: code %d, want an error, got\n%s", code, out)
	}
}
