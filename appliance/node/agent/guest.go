package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// What the guest says of itself, through its guest agent. It may lie: it is
// shown to whoever owns it, and decides nothing.

// toolsVersion asks the guest once for the version that its installer left.
func (rec *instanceReconciler) toolsVersion(ctx context.Context, id api.InstanceID, known string) string {
	if known != "" {
		return known
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if rec.o.Machines.AgentPing(ctx, id) != nil {
		return ""
	}
	r, err := rec.o.Machines.AgentExec(ctx, id, hypervisor.Exec{Argv: []string{"cat", "/etc/basalt-guest-tools-version"}, MaxOutput: 64})
	if err != nil || r.ExitCode != 0 {
		return ""
	}
	return firstLine(r.Stdout)
}

// firstLine keeps what is printable: the guest wrote it.
func firstLine(b []byte) string {
	var out []byte
	for _, c := range b {
		if c == '\n' || len(out) == 40 {
			break
		}
		if c > ' ' && c < 0x7f {
			out = append(out, c)
		}
	}
	return string(out)
}

// setup is how far cloud-init is in the guest.
type setup struct {
	reason string // one of setup…; empty: unknown
	errors string
}

// Reasons of the condition SetUp.
const (
	setupRuns   = "running" // passwords, keys and programs may not be there yet
	setupDone   = "done"
	setupErrors = "errors" // it is over, and something went wrong
)

// setupOpen reports whether a guest whose tools have answered is worth asking: its
// set-up is not over yet. A guest that has no cloud-init is not asked for ever,
// but once its tools have answered for the first time, however long it took to
// boot.
func setupOpen(st api.InstanceStatus, now time.Time) bool {
	c, known := condition(st, condSetUp)
	if known {
		return c.Reason == setupRuns
	}
	return st.GuestTools == "" || st.StartedAt == nil || now.Sub(*st.StartedAt) < bootTime
}

// askSetup prints cloud-init's result, which lies in a file system of this boot
// and is there once the last stage is over.
const askSetup = `cat /run/cloud-init/result.json 2>/dev/null || { test -d /run/cloud-init && echo running; }`

func (rec *instanceReconciler) guestSetup(ctx context.Context, id api.InstanceID) setup {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := rec.o.Machines.AgentExec(ctx, id, hypervisor.Exec{Argv: []string{"sh", "-c", askSetup}, MaxOutput: 16 << 10})
	if err != nil || r.ExitCode != 0 {
		return setup{}
	}
	return readSetup(r.Stdout)
}

// readSetup reads the answer to askSetup
// (https://docs.cloud-init.io/en/latest/explanation/return_codes.html).
func readSetup(out []byte) setup {
	if string(bytes.TrimSpace(out)) == "running" {
		return setup{reason: setupRuns}
	}
	var result struct {
		V1 *struct {
			Errors []string `json:"errors"`
		} `json:"v1"`
	}
	if json.Unmarshal(out, &result) != nil || result.V1 == nil {
		return setup{}
	}
	if len(result.V1.Errors) == 0 {
		return setup{reason: setupDone}
	}
	return setup{reason: setupErrors, errors: printableText(strings.Join(result.V1.Errors, "; "), 400)}
}

// printableText keeps at most limit runes of a text that the guest wrote.
func printableText(s string, limit int) string {
	var out strings.Builder
	for _, r := range s {
		if limit == 0 {
			return out.String() + "…"
		}
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			r = ' '
		}
		out.WriteRune(r)
		limit--
	}
	return out.String()
}
