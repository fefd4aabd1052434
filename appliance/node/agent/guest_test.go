package agent

import (
	"strings"
	"testing"
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
			t.Errorf("%q: %+v, want %+v", out, got, want)
		}
	}
	long := readSetup([]byte(`{"v1": {"errors": ["` + strings.Repeat("ä", 5000) + `"]}}`))
	if n := len([]rune(long.errors)); n != 401 {
		t.Errorf("%d runes", n)
	}
}

// The condition is of one run: it comes and goes with it.
func TestSetUpIsOfOneRun(t *testing.T) {
	w := newWorld(false)
	for w.in.Status.Phase != api.InstanceRunning {
		w.turn(false)
	}
	if _, ok := condition(w.in.Status, condSetUp); ok || !setupOpen(w.in.Status, w.now) {
		t.Fatal("known before anybody asked")
	}
	late, answered := w.now.Add(2*bootTime), w.in.Status
	answered.GuestTools = "1"
	if !setupOpen(w.in.Status, late) {
		t.Error("a guest that has booted slowly is not asked when its tools first answer")
	}
	if setupOpen(answered, late) {
		t.Error("a guest without cloud-init is asked for ever")
	}
	w.s.tools, w.s.setup = "1", setup{reason: setupRuns}
	if d := w.turn(false); d.again != bootEvery {
		t.Errorf("asks again after %v", d.again)
	}
	if !setupOpen(w.in.Status, w.now.Add(time.Hour)) {
		t.Error("a long set-up is no longer followed")
	}
	w.s.setup = setup{reason: setupDone}
	w.turn(false)
	w.s.setup = setup{}
	w.turn(false)
	if c, ok := condition(w.in.Status, condSetUp); !ok || !c.Status || setupOpen(w.in.Status, w.now) {
		t.Errorf("after its end: %+v", c)
	}
	w.s.domain = hypervisor.Stopped
	w.turn(false)
	if c, ok := condition(w.in.Status, condSetUp); ok {
		t.Errorf("outlives its run: %+v", c)
	}
}
