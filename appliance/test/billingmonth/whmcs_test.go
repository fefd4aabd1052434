package billingmonth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// shop simulates WHMCS with the parameters that it passes to the module.
type shop struct {
	t      *testing.T
	params map[string]any
}

// call calls a function of the module in a process of its own, and decodes its answer.
func (s shop) call(function string, change map[string]any, answer any) {
	s.t.Helper()
	if err := s.tryCall(function, change, answer); err != nil {
		s.t.Fatalf("%s: %v", function, err)
	}
}

func (s shop) tryCall(function string, change map[string]any, answer any) error {
	p := map[string]any{}
	for _, m := range []map[string]any{s.params, change} {
		for k, v := range m {
			p[k] = v
		}
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(s.t.Context(), "php", "../../../billing/whmcs/tests/call.php", function)
	cmd.Stdin = bytes.NewReader(raw)
	cmd.Env = append(os.Environ(), "BASALT_TIME_ZONE=Europe/Berlin")
	var out, wrong bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &wrong
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s%s", err, &out, &wrong)
	}
	if err := json.Unmarshal(out.Bytes(), answer); err != nil {
		return fmt.Errorf("decode the answer %q: %w", &out, err)
	}
	return nil
}

// must calls a function that must succeed.
func (s shop) must(function string, change map[string]any) {
	s.t.Helper()
	var answer string
	if s.call(function, change, &answer); answer != "success" {
		s.t.Fatalf("%s: answer %q, want success", function, answer)
	}
}

// TestMonthByWHMCS runs a month as WHMCS drives it: an order, sent five times at once; a larger
// package; a crash and the loss of a node; non-payment and payment; the end. The totals that
// WHMCS polls never decrease within a month, and at its end equal the metered usage: what was
// not polled in March is charged in April.
func TestMonthByWHMCS(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates a month")
	}
	t.Parallel()
	if _, err := exec.LookPath("php"); err != nil {
		t.Fatalf(`%v: run "make setup"`, err)
	}
	w := newWorld(t, newDisk(t))
	org := must(t, client.Of[api.Organization](w.op).Create, api.Organization{Meta: api.Meta{Name: "shop"}})
	key := must(t, client.Of[api.APIKey](w.op).Create, api.APIKey{Meta: api.Meta{Name: "whmcs", Organization: org.Meta.ID}, Spec: api.APIKeySpec{Role: api.RoleReseller}})
	at, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	s := shop{t, map[string]any{
		"serverid": 1, "serverhostname": at.Hostname(), "serverport": at.Port(), "serversecure": false, "serverusername": "", "serverpassword": "",
		"serveraccesshash": key.Secret, "serviceid": 7, "accountid": 7, "domain": "", "username": "basalt7", "password": "correct horse battery",
		"configoption1": "machine", "configoption2": "small", "configoption3": "debian", "configoption4": "", "configoption5": "1", "configoption6": "25",
		"configoption7": "", "configoption8": "", "configoption9": "", "configoptions": map[string]any{}, "customfields": map[string]any{},
		"clientsdetails": map[string]any{"firstname": "Ann", "lastname": "Example", "companyname": "", "email": "ann@example.com"},
	}}

	w.until(1, 9, 30)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			var answer string
			if err := s.tryCall("CreateAccount", nil, &answer); err != nil || answer != "success" {
				t.Errorf("CreateAccount: answer %q, error %v, want success", answer, err)
			}
		})
	}
	wg.Wait()
	all := w.list(api.KindInstance)
	if len(all) != 1 {
		t.Fatalf("%d instances were created by one order, want 1", len(all))
	}
	id := all[0].Meta.ID
	w.wantPhase(w.op, id, api.InstanceRunning)

	last, polls := map[string]float64{}, 0
	poll := func() {
		t.Helper()
		now := map[string]float64{}
		s.call("metrics", nil, &now)
		if len(now) == 0 {
			t.Fatal("metrics are empty, want some")
		}
		for name, was := range last {
			if now[name] < was {
				t.Errorf("%s: metric %s = %f, want at least %f as before", w.Now(), name, now[name], was)
			}
		}
		last, polls = now, polls+1
	}
	for day := 2; day <= 4; day++ {
		w.until(day, 0, 10)
		poll()
	}
	large := map[string]any{"configoption2": "large"}
	s.must("ChangePackage", large)
	s.must("ChangePackage", large)
	s.params["configoption2"] = "large"
	s.must("stop", nil)
	w.wantPhase(w.op, id, api.InstanceStopped)
	w.pass(30 * time.Minute)
	s.must("start", nil)
	if in := w.wantPhase(w.op, id, api.InstanceRunning); in.Assignment.Vcpus != 4 {
		t.Errorf("instance of the larger package has %d vCPUs, want 4", in.Assignment.Vcpus)
	}
	poll()

	w.until(5, 12, 40)
	h := w.nodeOf(w.instance(w.op, id))
	h.kill()
	w.until(5, 13, 10)
	h.start()
	poll()
	w.until(10, 0, 0)
	w.send(w.instance(w.op, id), 3<<30, 5<<29)
	poll()
	for range 2 {
		s.must("SuspendAccount", map[string]any{"suspendreason": "Overdue on Payment"})
	}
	w.wantPhase(w.op, id, api.InstanceStopped)
	w.pass(time.Hour)
	poll()
	suspended := w.metered()[id][api.MeterVCPU]
	w.until(12, 0, 0)
	if now := w.metered()[id][api.MeterVCPU]; now != suspended {
		t.Errorf("instance of a suspended account was metered with %f vCPU seconds, want 0", now-suspended)
	}
	for range 2 {
		s.must("UnsuspendAccount", nil)
	}
	w.wantPhase(w.op, id, api.InstanceRunning)
	w.until(20, 0, 0)
	for range 2 {
		s.must("TerminateAccount", nil)
	}
	w.pass(2 * time.Hour)
	for _, kind := range []api.Kind{api.KindInstance, api.KindVolume, api.KindProject} {
		if left := w.list(kind); len(left) != 0 {
			t.Errorf("after TerminateAccount: %d objects of kind %s are left, want none: %+v", len(left), kind, left)
		}
	}
	poll()
	// The account is ordered once more, over the month's end: WHMCS's last poll of March is in
	// the morning of its last day, and misses 13 hours of it.
	w.until(29, 10, 0)
	s.must("CreateAccount", large)
	all = w.list(api.KindInstance)
	if len(all) != 1 {
		t.Fatalf("%d instances after the second order, want 1", len(all))
	}
	again := all[0].Meta.ID
	w.wantPhase(w.op, again, api.InstanceRunning)
	w.until(31, 9, 10)
	poll()
	march := last
	w.until(32, 1, 0)
	last = map[string]float64{} // another month
	poll()
	if last["vcpu_hours"] == 0 {
		t.Error("vcpu_hours of April = 0, want the rest of the last day of March")
	}
	w.until(33, 8, 0)
	s.must("TerminateAccount", nil)
	w.pass(2 * time.Hour)
	poll()
	sum := truth{}
	for _, meters := range w.metered() {
		for m, n := range meters {
			sum.add("all", m, n)
		}
	}
	for name, want := range map[string]float64{
		"gpu_hours": sum["all"][api.MeterGPU] / 3600e9, "vcpu_hours": sum["all"][api.MeterVCPU] / 3600,
		"memory_gib_hours": sum["all"][api.MeterMemory] / (3600 << 30), "disk_gib_hours": sum["all"][api.MeterVolume] / (3600 << 30),
		"vram_gib_hours": sum["all"][api.MeterVRAM] / (3600 << 30), "egress_gib": sum["all"][api.MeterEgress] / (1 << 30),
	} {
		if got := march[name] + last[name]; want == 0 || got > want+1e-6 || got < want-4e-6 || march[name] == 0 {
			t.Errorf("WHMCS charges %f %s, %f of it for March, want %f as metered", got, name, march[name], want)
		}
	}
	w.compare(id, again, "rtr-000000000001")
	t.Logf("%d polls: %v", polls, sum["all"])
}
