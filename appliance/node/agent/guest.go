package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/gpu/guest/selfreport"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// What the guest says of itself, through its guest agent. It may lie: it is
// shown to whoever owns it, and decides nothing.

// told is what a guest has said of itself when it was last asked.
type told struct {
	report selfreport.Report
	known  bool // it has answered
}

// tools is the version of the guest tools: what it said, or what was known when it did
// not answer.
func (t told) tools(before string) string {
	if t.known {
		return t.report.Tools
	}
	return before
}

// Guests are asked as often as their owners can be waiting for it, and no more. One that
// does not answer in time, or answers garbage, holds its reconcile up: it is asked less
// and less often.
const (
	askTimeout = 5 * time.Second
	askMost    = time.Minute
	askBooting = 8 * time.Second // the most while it boots: then an agent is slow, not broken
)

// guestReports asks guests for their reports, and remembers what they said.
type guestReports struct {
	*core
	mu sync.Mutex
	of map[api.InstanceID]*asked
}

type asked struct {
	told told
	next time.Time     // not before
	wait time.Duration // that the last fault cost
}

func (r *guestReports) forget(id api.InstanceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, id)
}

// ask returns what the guest of a running instance says. It is asked while its tools are
// not known, or while more is to be known of its GPU.
func (r *guestReports) ask(ctx context.Context, in api.Instance, gpu bool) told {
	id, now := api.InstanceID(in.Meta.ID), r.o.Now()
	r.mu.Lock()
	a := r.of[id]
	if a == nil {
		a = &asked{}
		r.of[id] = a
	}
	last, due := *a, !now.Before(a.next)
	r.mu.Unlock()
	if !due || !gpu && last.told.tools(in.Status.GuestTools) != "" {
		return last.told
	}
	booting := in.Status.StartedAt == nil || now.Sub(*in.Status.StartedAt) < bootTime
	next := r.observe(ctx, id, last, booting)
	r.mu.Lock()
	defer r.mu.Unlock()
	*a = next
	return next.told
}

// observe asks once, and decides when to ask again.
func (r *guestReports) observe(ctx context.Context, id api.InstanceID, last asked, booting bool) (next asked) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := r.o.Machines.AgentPing(ctx, id); err != nil && ctx.Err() == nil {
		return asked{} // no agent yet, which costs nothing to hear
	}
	var report selfreport.Report
	out, err := r.o.Machines.AgentExec(ctx, id, hypervisor.Exec{Argv: []string{"sh", "-c", selfreport.Script}, MaxOutput: selfreport.MaxSize})
	switch {
	case err != nil:
	case out.Truncated:
		err = fmt.Errorf("%w: more than %d bytes", selfreport.ErrNoReport, selfreport.MaxSize)
	default:
		report, err = selfreport.Parse(out.Stdout)
	}
	most := askMost
	if booting {
		most = askBooting
	}
	if err != nil {
		r.log.Debug("read information from guest agent failed", "id", id, "error", err)
		next.wait = min(max(2*last.wait, bootEvery), most)
		next.next = r.o.Now().Add(next.wait)
		return next
	}
	next.told = told{report, true}
	if !booting {
		next.next = r.o.Now().Add(askMost)
	}
	return next
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
