package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/gpu/guest/selfreport"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// The guest reports its own state through its guest agent. It may report anything:
// the report is shown to the instance's owner, and never decides what the node
// does.

// guestReport is the last report of a guest about itself.
type guestReport struct {
	content selfreport.Report
	known   bool // the guest has answered
}

// tools returns the version of the guest tools: the reported one, or before if the
// guest has not answered.
func (t guestReport) tools(before string) string {
	if t.known {
		return t.content.Tools
	}
	return before
}

// Limits of the queries to guests. Guests are queried as often as their owners may
// be waiting for a result, and not more. One that does not answer in time, or
// returns garbage, delays its reconcile, so it is queried less and less often.
const (
	queryTimeout     = 5 * time.Second
	queryInterval    = time.Minute
	bootQueryTimeout = 8 * time.Second // limit while the guest boots, when an agent is slow rather than broken
)

// guestReports queries guests for their reports and keeps the last ones.
type guestReports struct {
	*core
	mu sync.Mutex
	of map[api.InstanceID]*guestQuery
}

type guestQuery struct {
	report guestReport
	next   time.Time     // earliest time of the next query
	wait   time.Duration // delay after the last failure
}

func (r *guestReports) forget(id api.InstanceID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, id)
}

// query returns the last report of the guest of a running instance. The guest is
// queried while the version of its tools is unknown, or, if gpu is set, while more
// is to be known of its GPU.
func (r *guestReports) query(ctx context.Context, in api.Instance, gpu bool) guestReport {
	id, now := api.InstanceID(in.Meta.ID), r.o.Now()
	r.mu.Lock()
	a := r.of[id]
	if a == nil {
		a = &guestQuery{}
		r.of[id] = a
	}
	last, due := *a, !now.Before(a.next)
	r.mu.Unlock()
	if !due || !gpu && last.report.tools(in.Status.GuestTools) != "" {
		return last.report
	}
	booting := in.Status.StartedAt == nil || now.Sub(*in.Status.StartedAt) < bootTime
	next := r.observe(ctx, id, last, booting)
	r.mu.Lock()
	defer r.mu.Unlock()
	*a = next
	return next.report
}

// observe queries the guest once, and decides when to query it again.
func (r *guestReports) observe(ctx context.Context, id api.InstanceID, last guestQuery, booting bool) (next guestQuery) {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	if err := r.o.Machines.AgentPing(ctx, id); err != nil && ctx.Err() == nil {
		return guestQuery{} // no agent yet; the ping costs nothing
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
	most := queryInterval
	if booting {
		most = bootQueryTimeout
	}
	if err != nil {
		r.log.Debug("read information from guest agent failed", "id", id, "error", err)
		next.wait = min(max(2*last.wait, bootEvery), most)
		next.next = r.o.Now().Add(next.wait)
		return next
	}
	next.report = guestReport{report, true}
	if !booting {
		next.next = r.o.Now().Add(queryInterval)
	}
	return next
}

// setup is the progress of cloud-init in the guest.
type setup struct {
	reason string // one of setup…; empty if unknown
	errors string
}

// Reasons of the condition SetUp.
const (
	setupRuns   = "running" // passwords, keys and programs may not be installed yet
	setupDone   = "done"
	setupErrors = "errors" // cloud-init has ended with errors
	setupNone   = "none"   // the guest has no cloud-init: there is no condition
)

// setupOpen reports whether the guest should be queried for its set-up because that
// has not ended. A guest without cloud-init is queried until it has answered for
// the first time, however long it took to boot, and not for ever.
func setupOpen(st api.InstanceStatus, now time.Time) bool {
	c, known := condition(st, condSetUp)
	if known {
		return c.Reason == setupRuns
	}
	return st.GuestTools == "" || st.StartedAt == nil || now.Sub(*st.StartedAt) < bootTime
}

// askSetup prints cloud-init's result, which is in a file system of this boot and
// is written when the last stage has ended.
const askSetup = `cat /run/cloud-init/result.json 2>/dev/null || { test -d /run/cloud-init && echo running; }`

// guestSetup queries the guest. One that is too busy to answer is most likely being set
// up: it is queried again, until it answers.
func (rec *instanceReconciler) guestSetup(ctx context.Context, id api.InstanceID) setup {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := rec.o.Machines.AgentExec(ctx, id, hypervisor.Exec{Argv: []string{"sh", "-c", askSetup}, MaxOutput: 16 << 10})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return setup{reason: setupRuns}
	case err != nil:
		return setup{}
	case r.ExitCode != 0:
		return setup{reason: setupNone}
	}
	return readSetup(r.Stdout)
}

// readSetup parses the output of askSetup
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

// printableText returns at most limit runes of a text from the guest, with control
// characters replaced by spaces.
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
