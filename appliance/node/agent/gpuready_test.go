package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/gpu/guest/selfreport"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// seenWith returns the observation of a running instance with a vGPU whose backend
// is alive.
func seenWith(g GuestGPU, t guestReport) seen {
	g.Known = true
	return seen{vgpu: true, gpu: g, report: t}
}

func reported(r selfreport.Report) guestReport { return guestReport{r, true} }

func TestGPUReady(t *testing.T) {
	late := api.Condition{Type: condGPU, Reason: string(api.GPUStarting), Since: t0.Add(-2 * bootTime)}
	soon := api.Condition{Type: condGPU, Reason: string(api.GPUStarting), Since: t0}
	was := api.Condition{Type: condGPU, Status: true, Reason: string(api.GPUReady), Since: t0.Add(-time.Hour)}
	driver, works := GuestGPU{Driver: true}, GuestGPU{Driver: true, Library: true}
	cloud := reported(selfreport.Report{Kernel: "6.12-cloud", DRM: selfreport.No, VirtioGPU: selfreport.No, Module: selfreport.ModuleMissing, Tools: "1"})
	for name, c := range map[string]struct {
		seen seen
		had  api.Condition
		want api.GPUReason
		text string // in the message
	}{
		"works":         {seenWith(works, guestReport{}), soon, api.GPUReady, ""},
		"backend ended": {seen{gpu: GuestGPU{Known: true, Driver: true, Library: true}}, was, api.GPUBackendEnded, "restart"},
		"old backend":   {seen{vgpu: true}, was, api.GPUUnknown, "restart"},
		// The guest claims that everything works, which nothing observed confirms.
		"liar": {seenWith(GuestGPU{}, reported(selfreport.Report{Tools: "99", Driver: true, Check: selfreport.CheckOK, Module: selfreport.ModuleLoaded})), late, api.GPUNoDriver, "dmesg"},
		// The guest claims that nothing works, while the node observes that it
		// does.
		"pessimist": {seenWith(works, cloud), soon, api.GPUReady, ""},

		"kernel without DRM, tools installed": {seenWith(GuestGPU{}, cloud), soon, api.GPUKernelWithoutDriver, "6.12-cloud"},
		"nomodeset":                           {seenWith(GuestGPU{}, reported(selfreport.Report{NoModeset: true, DRM: selfreport.AsModule, Module: selfreport.ModuleLoaded})), soon, api.GPUNoModeset, "boot loader"},
		"blocked":                             {seenWith(GuestGPU{}, reported(selfreport.Report{Blocked: "/etc/modprobe.d/x.conf", Module: selfreport.ModulePresent})), soon, api.GPUModuleBlocked, "/etc/modprobe.d/x.conf"},
		"module missing":                      {seenWith(GuestGPU{}, reported(selfreport.Report{DRM: selfreport.AsModule, VirtioGPU: selfreport.AsModule, Module: selfreport.ModuleMissing})), soon, api.GPUModuleMissing, "further modules"},
		"kernel being replaced":               {seenWith(GuestGPU{}, reported(selfreport.Report{DRM: selfreport.No, Change: selfreport.ChangeInstalling})), soon, api.GPUKernelChanging, "installing"},
		"kernel replaced":                     {seenWith(GuestGPU{}, reported(selfreport.Report{DRM: selfreport.No, Change: selfreport.ChangeReboot})), soon, api.GPURebootNeeded, "reboot"},
		"replacing it failed":                 {seenWith(GuestGPU{}, reported(selfreport.Report{DRM: selfreport.No, Change: selfreport.ChangeFailed})), soon, api.GPUKernelWithoutDriver, "ordinary kernel"},
		"boots":                               {seenWith(GuestGPU{}, reported(selfreport.Report{Module: selfreport.ModulePresent})), soon, api.GPUStarting, ""},
		"boots without an agent":              {seenWith(GuestGPU{}, guestReport{}), soon, api.GPUStarting, ""},
		"no agent":                            {seenWith(GuestGPU{}, guestReport{}), late, api.GPUNoDriver, "no guest agent"},
		"reboots":                             {seenWith(GuestGPU{}, guestReport{}), was, api.GPUStarting, ""},

		"driver, before the tools":  {seenWith(driver, guestReport{}), soon, api.GPUStarting, ""},
		"driver, no tools":          {seenWith(driver, reported(selfreport.Report{Driver: true})), late, api.GPUToolsMissing, "BASALT-TOOLS"},
		"driver, never used":        {seenWith(driver, reported(selfreport.Report{Driver: true, Tools: "1"})), late, api.GPUNotUsed, "nvidia-smi"},
		"driver, no agent":          {seenWith(driver, guestReport{}), late, api.GPUNotUsed, "nvidia-smi"},
		"library of another time":   {seenWith(GuestGPU{Driver: true, Mismatch: true, Refused: "9.9"}, reported(selfreport.Report{Tools: "0.1"})), soon, api.GPUToolsTooOld, "0.1"},
		"library that sees it":      {seenWith(driver, reported(selfreport.Report{Driver: true, Check: selfreport.CheckMismatch})), soon, api.GPUToolsTooOld, ""},
		"library that was refused":  {seenWith(GuestGPU{Driver: true, Refused: "no\x1b[31m room"}, guestReport{}), soon, api.GPULibraryFailed, "no [31m room"},
		"falls silent after saying": {seenWith(GuestGPU{}, guestReport{}), api.Condition{Type: condGPU, Reason: string(api.GPUNoModeset), Message: "as it was", Since: t0}, api.GPUNoModeset, "as it was"},
	} {
		t.Run(name, func(t *testing.T) {
			got := gpuReady(c.seen, c.had, true, t0)
			if got.reason != c.want || !strings.Contains(got.message, c.text) {
				t.Errorf("readiness = %s (%q), want %s with %q", got.reason, got.message, c.want, c.text)
			}
			if !slices.Contains(api.GPUReasons, got.reason) {
				t.Errorf("reason %s is not in api.GPUReasons", got.reason)
			}
			if got.reason != api.GPUReady && got.message == "" {
				t.Errorf("reason %s has an empty message, want one that says what to do", got.reason)
			}
		})
	}
}

// TestGPUReadyPerRun checks that the condition ends with the run, and that an
// instance without a vGPU has none.
func TestGPUReadyPerRun(t *testing.T) {
	w := newWorld(true)
	w.s.gpu = GuestGPU{Known: true}
	w.expect(t, api.InstanceRunning)
	if c, ok := condition(w.in.Status, condGPU); !ok || c.Status || c.Reason != string(api.GPUStarting) {
		t.Fatalf("condition GPUReady of a booting instance = %+v, want false and GPUStarting", c)
	}
	if d := w.turn(false); d.again != bootEvery {
		t.Errorf("reconciled again after %v, want %v: a user waits for the result", d.again, bootEvery)
	}
	w.s.report = reported(selfreport.Report{Tools: "1.0", DRM: selfreport.No})
	w.s.tools = "1.0"
	w.turn(false)
	if c, _ := condition(w.in.Status, condGPU); c.Status || c.Reason != string(api.GPUKernelWithoutDriver) {
		t.Errorf("condition GPUReady with tools and a kernel without a driver = %+v, want false and GPUKernelWithoutDriver", c)
	}
	w.s.gpu = GuestGPU{Known: true, Driver: true, Library: true}
	w.turn(false)
	if c, _ := condition(w.in.Status, condGPU); !c.Status || c.Reason != string(api.GPUReady) {
		t.Errorf("condition GPUReady after a library has opened the GPU = %+v, want true", c)
	}
	w.in.Spec.Power = api.PowerStopped
	w.expect(t, api.InstanceStopped)
	if c, ok := condition(w.in.Status, condGPU); ok {
		t.Errorf("condition GPUReady of the stopped instance = %+v, want none", c)
	}
	plain := newWorld(false)
	plain.expect(t, api.InstanceRunning)
	if c, ok := condition(plain.in.Status, condGPU); ok {
		t.Errorf("condition GPUReady of an instance without a vGPU = %+v, want none", c)
	}
}

// agentOf is a driver whose guest agents are broken in some way.
type agentOf struct {
	hypervisor.Driver
	ping   error
	answer func(context.Context) (string, error)
	asked  int
}

func (a *agentOf) AgentPing(context.Context, api.InstanceID) error { return a.ping }

func (a *agentOf) AgentExec(ctx context.Context, _ api.InstanceID, e hypervisor.Exec) (r hypervisor.ExecResult, err error) {
	a.asked++
	text, err := a.answer(ctx)
	r.Stdout = []byte(text)
	if n := e.OutputLimit(); len(r.Stdout) > n {
		r.Stdout, r.Truncated = r.Stdout[:n], true
	}
	return r, err
}

// TestBrokenAgents checks that a guest whose agent returns garbage, too much or
// errors costs its node a query now and then, and that nothing it sends is used.
func TestBrokenAgents(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing": "", "garbage": "\x00\xff\x1b[2J", "flood": strings.Repeat("basalt-report 1\n", 1<<20), "another form": "basalt-report 9\ntools=1\n", "fails": "!",
	} {
		t.Run(name, func(t *testing.T) {
			now := t0
			a := &agentOf{answer: func(context.Context) (string, error) {
				if answer == "!" {
					return "", errors.New("guest agent of ins-1: invalid character")
				}
				return answer, nil
			}}
			r := &guestReports{core: &core{o: Options{Machines: a, Now: func() time.Time { return now }}, log: slog.New(slog.DiscardHandler)}, of: map[api.InstanceID]*guestQuery{}}
			begun := t0
			in := api.Instance{Meta: api.Meta{ID: "ins-1"}, Status: api.InstanceStatus{StartedAt: &begun}}
			for now.Sub(t0) < time.Hour {
				if got := r.query(t.Context(), in, true); got.content.Tools != "" {
					t.Fatalf("report = %+v from the answer %.40q, want no tools version", got, answer)
				}
				now = now.Add(bootEvery)
			}
			if most := int(bootTime/bootQueryTimeout+time.Hour/queryInterval) + 4; a.asked > most || a.asked < 10 {
				t.Errorf("agent queried %d times in an hour, want 10 to %d", a.asked, most)
			}
			r.forget("ins-1")
			if len(r.of) != 0 {
				t.Errorf("reports after forget = %v, want none", r.of)
			}
		})
	}
}

// TestSilentAgent checks that each query of an agent which never answers times out,
// that the intervals grow, and so that other guests wait for at most one query.
func TestSilentAgent(t *testing.T) {
	now := t0
	a := &agentOf{answer: func(ctx context.Context) (string, error) {
		deadline, bounded := ctx.Deadline()
		if !bounded || time.Until(deadline) > queryTimeout {
			return "", errors.New("the query has no deadline within askTimeout")
		}
		return "", context.DeadlineExceeded
	}}
	r := &guestReports{core: &core{o: Options{Machines: a, Now: func() time.Time { return now }}, log: slog.New(slog.DiscardHandler)}, of: map[api.InstanceID]*guestQuery{}}
	in := api.Instance{Meta: api.Meta{ID: "ins-1"}}
	var waits []time.Duration
	for range 4 {
		before := now
		for n := a.asked; a.asked == n; now = now.Add(time.Second) {
			r.query(t.Context(), in, false)
		}
		waits = append(waits, now.Sub(before))
	}
	if !slices.IsSorted(waits) || waits[3] != bootQueryTimeout {
		t.Errorf("intervals between queries = %v, want them growing up to %v", waits, bootQueryTimeout)
	}
	// A guest without an agent is pinged every time, as a ping costs nothing.
	a.ping = api.Errorf(api.CodeUnavailable, "no agent")
	now = now.Add(time.Hour)
	n := a.asked
	r.query(t.Context(), in, false)
	a.ping, a.answer = nil, func(context.Context) (string, error) { return "basalt-report 1\ntools=2.0\n", nil }
	if got := r.query(t.Context(), in, false); got.content.Tools != "2.0" || a.asked != n+1 {
		t.Errorf("report once the agent answers = %+v after %d queries, want version 2.0 after one", got, a.asked-n)
	}
	in.Status.GuestTools = "2.0"
	if r.query(t.Context(), in, false); a.asked != n+1 {
		t.Errorf("a guest whose tools version is known was queried %d times more, want never", a.asked-n-1)
	}
}
