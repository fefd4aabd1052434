package agent

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/hypervisor"
)

func TestReadSetup(t *testing.T) {
	for out, want := range map[string]setup{
		"":             {},
		"running\n":    {reason: setupRuns},
		"{":            {},
		`{"v1": null}`: {},
		`{"v2": {}}`:   {},
		`[1]`:          {},
		`{"v1": {"datasource": "DataSourceNoCloud", "errors": []}}`:                  {reason: setupDone},
		`{"v1": {"errors": ["('runcmd', KeyError())", "no \u001b[31mred\n\u0000"]}}`: {reason: setupErrors, errors: "('runcmd', KeyError()); no  [31mred  "},
	} {
		if got := readSetup([]byte(out)); got != want {
			t.Errorf("readSetup(%q) = %+v, want %+v", out, got, want)
		}
	}
	long := readSetup([]byte(`{"v1": {"errors": ["` + strings.Repeat("ä", 5000) + `"]}}`))
	if n := len([]rune(long.errors)); n != 401 {
		t.Errorf("errors of a long result have %d runes, want 400 and an ellipsis", n)
	}
}

// TestSetUpIsOfOneRun checks that the condition SetUp starts and ends with the run.
func TestSetUpIsOfOneRun(t *testing.T) {
	w := newWorld(false)
	for w.in.Status.Phase != api.InstanceRunning {
		w.turn(false)
	}
	if _, ok := condition(w.in.Status, condSetUp); ok || !setupOpen(w.in.Status, w.now) {
		t.Fatal("the set-up of a new run is known or not open, want it unknown and open")
	}
	late, answered := w.now.Add(2*bootTime), w.in.Status
	answered.GuestTools = "1"
	if !setupOpen(w.in.Status, late) {
		t.Error("setupOpen of a slow guest whose tools have not answered = false, want true")
	}
	if setupOpen(answered, late) {
		t.Error("setupOpen of a guest without cloud-init after the boot time = true, want false")
	}
	w.s.tools, w.s.setup = "1", setup{reason: setupRuns}
	if d := w.turn(false); d.again != bootEvery {
		t.Errorf("reconciled again after %v, want %v", d.again, bootEvery)
	}
	if !setupOpen(w.in.Status, w.now.Add(time.Hour)) {
		t.Error("setupOpen of a set-up that runs for an hour = false, want true")
	}
	w.s.setup = setup{reason: setupNone}
	w.turn(false)
	if c, ok := condition(w.in.Status, condSetUp); ok {
		t.Errorf("condition SetUp of a guest that answered that it has no cloud-init = %+v, want none", c)
	}
	w.s.setup = setup{reason: setupDone}
	w.turn(false)
	w.s.setup = setup{}
	w.turn(false)
	if c, ok := condition(w.in.Status, condSetUp); !ok || !c.Status || setupOpen(w.in.Status, w.now) {
		t.Errorf("condition SetUp after the end = %+v, want true and not open", c)
	}
	w.s.domain = hypervisor.Stopped
	w.turn(false)
	if c, ok := condition(w.in.Status, condSetUp); ok {
		t.Errorf("condition SetUp of the stopped instance = %+v, want none", c)
	}
}

// answers is a guest agent that answers as the function does.
type answers struct {
	hypervisor.Driver
	exec func(context.Context) (hypervisor.ExecResult, error)
}

func (a answers) AgentExec(ctx context.Context, _ api.InstanceID, _ hypervisor.Exec) (hypervisor.ExecResult, error) {
	return a.exec(ctx)
}

// TestGuestSetup checks what the answers of a guest mean. A guest that was busy once, when its
// tools were known only after the boot time, was not queried any more.
func TestGuestSetup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what string
			exec func(context.Context) (hypervisor.ExecResult, error)
			want string
		}{
			{"busy", func(ctx context.Context) (hypervisor.ExecResult, error) {
				<-ctx.Done()
				return hypervisor.ExecResult{}, ctx.Err()
			}, setupRuns},
			{"no agent", func(context.Context) (hypervisor.ExecResult, error) {
				return hypervisor.ExecResult{}, errors.New("no agent")
			}, ""},
			{"no cloud-init", func(context.Context) (hypervisor.ExecResult, error) { return hypervisor.ExecResult{ExitCode: 1}, nil }, setupNone},
			{"ended", func(context.Context) (hypervisor.ExecResult, error) {
				return hypervisor.ExecResult{Stdout: []byte(`{"v1": {"errors": []}}`)}, nil
			}, setupDone},
		} {
			rec := &instanceReconciler{core: &core{o: Options{Machines: answers{exec: c.exec}}}}
			if got := rec.guestSetup(t.Context(), "ins-1"); got.reason != c.want {
				t.Errorf("set-up of a guest that is %q = %q, want %q", c.what, got.reason, c.want)
			}
		}
	})
}
