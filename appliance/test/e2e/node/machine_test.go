package node_test

import (
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// world is a node with two tenants.
type world struct {
	*node
	tenant   *client.API // a member of project one
	stranger *client.API // a member of project two, of another organization
	token    string      // the tenant's
	outside  *outside
	apps     appGate

	debian  guest     // with cloud-init and a network; boots while the small one is used
	created time.Time // when the Debian guest was created
	small   guest     // has only what programs on a virtual GPU need
	crashed time.Time // when its QEMU was killed

	deaf        guest // boots to a halt and ignores the power button; being stopped
	deafStopped chan time.Duration
}

// TestMachine runs its parts on one node, in order. Debian, whose boot takes most of a minute
// without KVM, boots once, while the faults are tested on the small guest, which reboots within
// seconds.
func TestMachine(t *testing.T) {
	prepared(t)
	o := newOutside(t)
	apps := newAppGate(t)
	flags := []string{"--network", "ovn", "--datapath", "netdev", "--external", o.cable, "--resolver", o.resolver, "--ssh-listen", port.Address(t)}
	w := &world{outside: o, node: newNode(t, programs(t), t.TempDir(), append(flags, apps.flags()...)...), apps: apps}
	parts := []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"Tenants", tenants},
		{"ImageBad", badImages},
		{"FitsNowhere", fitsNowhere},
		{"Rescued", rescued},
		{"DebianBoots", debianBoots},
		{"ControlPlaneKilledWhileCreating", killedWhileCreating},
		{"SmallGuest", smallGuest},
		{"GuestProcessKilled", guestProcessKilled},
		{"WorkerKilled", workerKilled},
		{"OutOfMemory", outOfMemory},
		{"GPUDKilled", gpudKilled},
		{"PlugPulled", plugPulled}, // before basaltd is killed, after which it has another grace time
		{"ControlPlaneKilled", controlPlaneKilled},
		{"BackendUpgraded", backendUpgraded},
		{"UsageIsExact", usageIsExact},
		{"BackendKilled", backendKilled},
		{"QEMUKilled", qemuKilled},
		{"MainJob", mainJob},
		{"Network", network},
		{"SSH", sshGateway},
		{"Journey", journey},
		{"Apps", appGateway},
		{"External", external},
		{"Attacks", attacks},
		{"Backup", backup},
		{"StartedAfterCrash", startedAfterCrash},
		{"ResizedAndStopped", resizedAndStopped},
		{"PoweredOff", poweredOff},
		{"Deleted", deleted},
		{"Churn", churn},
	}
	for _, p := range parts {
		began := time.Now()
		if !t.Run(p.name, func(t *testing.T) {
			was := w.t
			w.t = t
			defer func() { w.t = was }()
			p.run(t, w)
		}) {
			t.Fatalf("%s failed, and the later parts depend on it", p.name)
		}
		t.Logf("%s: %v", p.name, time.Since(began).Round(100*time.Millisecond))
	}
	w.stop()
}

const manifest = `
kind: Organization
meta: {name: ORG}
spec: {displayName: ORG Ltd}
---
kind: Project
meta: {name: PRJ, organization: ORG}
spec: {displayName: PRJ}
`

// tenants creates two organizations, each with a project and a member's key, and checks what
// they may access. The guest has one processor, because QEMU's emulator occasionally aborts
// with guests of two (docs/notes/guests.md).
func tenants(t *testing.T, w *world) {
	operator, err := os.ReadFile(filepath.Join(w.data, "node", "operator.key"))
	if err != nil {
		t.Fatal(err)
	}
	flavors := filepath.Join(w.data, "flavors.yaml")
	if err := os.WriteFile(flavors, []byte(`
kind: Flavor
meta: {name: tiny}
spec: {vcpus: 1, memoryBytes: 64MiB, rootBytes: 64MiB}
---
kind: Flavor
meta: {name: guest}
spec: {vcpus: 1, memoryBytes: 768MiB, rootBytes: 3GiB}
---
kind: Flavor
meta: {name: small}
spec: {vcpus: 1, memoryBytes: 192MiB, rootBytes: 128MiB}
---
kind: Flavor
meta: {name: small-big}
spec: {vcpus: 1, memoryBytes: 640MiB, rootBytes: 128MiB}
---
kind: Flavor
meta: {name: monster}
spec: {vcpus: 200, memoryBytes: 1TiB, rootBytes: 64MiB}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	w.mustCLI(string(operator), "apply", "-f", flavors)
	for _, pair := range [][2]string{{"org-one", "one"}, {"org-two", "two"}} {
		file := filepath.Join(w.data, pair[0]+".yaml")
		text := strings.NewReplacer("ORG", pair[0], "PRJ", pair[1]).Replace(manifest)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w.mustCLI(string(operator), "apply", "-f", file)
		key, err := client.Of[api.APIKey](w.operator).Create(w.ctx, api.APIKey{Meta: api.Meta{Name: "member", Organization: pair[0], Project: pair[1]}, Spec: api.APIKeySpec{Role: api.RoleMember}})
		if err != nil {
			t.Fatal(err)
		}
		if pair[1] == "one" {
			w.token, w.tenant = key.Secret, w.client(key.Secret)
		} else {
			w.stranger = w.client(key.Secret)
		}
	}
	_, err = w.client("basalt_wrong").Whoami(w.ctx)
	codeOf(t, err, api.CodeUnauthenticated)
	_, err = client.Of[api.Flavor](w.tenant).Create(w.ctx, api.Flavor{Meta: api.Meta{Name: "mine"}, Spec: api.FlavorSpec{Vcpus: 1, MemoryBytes: 64 * mib}})
	codeOf(t, err, api.CodeForbidden)
}

// consolePassword and publicKey belong to the Debian guest. debianSetup is user data as the
// portal generates it with a password (ui/src/lib/password.ts); the guest of TestPortal reads
// the same.
const (
	consolePassword = "abcd-efgh-jkmn-pqrs"
	publicKey       = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHqbm/wCfBCKnn7FCJ7ITEqYqly+ruMQHTFhamFoSuFD me@here\n"
	debianSetup     = "#cloud-config\npassword: \"" + consolePassword + "\"\nchpasswd: {expire: false}\nssh_pwauth: false\n"
)

// debianBoots creates the guest that later parts use once it has booted.
func debianBoots(t *testing.T, w *world) {
	w.importImage(t, "debian")
	w.created = time.Now()
	file := filepath.Join(w.data, "user-data")
	keys := filepath.Join(w.data, "authorized_keys")
	for path, text := range map[string]string{file: debianSetup, keys: publicKey} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w.debian = w.guestByCLI(t, "main", "--flavor", "guest", "--image", "debian", "--user-data", file, "--ssh-key", keys,
		"--vram", "1GiB", "--gpu-pool", "default", "--gpu-share", "40")
}

// smallGuest creates the guest that the faults are tested on.
func smallGuest(t *testing.T, w *world) {
	w.importImage(t, "small")
	began := time.Now()
	w.small = w.guestByCLI(t, "small", "--flavor", "small", "--image", "small",
		"--vram", "1GiB", "--gpu-pool", "default", "--gpu-share", "40")
	w.small.booted(t, "created", began)
	w.cuda(t, "small")
	w.small.writeProgram(t, "/root/loop", loopProgram(t))
}

func (w *world) importImage(t *testing.T, name string) {
	t.Helper()
	w.mustCLI(operatorToken(t, w), "image", "import", name, "--file", guestImage(t, name), "--format", "qcow2", "--public", "--wait")
}

// guestByCLI creates an instance as the README describes, and waits until it runs.
func (w *world) guestByCLI(t *testing.T, name string, flags ...string) guest {
	t.Helper()
	w.mustCLI(w.token, append([]string{"instance", "create", name, "--project", "one", "--wait", "--timeout", "300s"}, flags...)...)
	in, err := client.Of[api.Instance](w.tenant).Get(w.ctx, name, client.Query{Project: "one"})
	if err != nil {
		t.Fatal(err)
	}
	return guest{w.node, w.tenant, in.Meta.ID}
}

// cuda runs the demo programs in an instance, by the CLI.
func (w *world) cuda(t *testing.T, name string) {
	t.Helper()
	for _, c := range []struct {
		argv []string
		want string
	}{
		{[]string{"nvidia-smi"}, "1024MiB"},
		{[]string{"/opt/basalt/demo/vecadd"}, "OK"},
		{[]string{"/opt/basalt/demo/matmul"}, "OK"},
	} {
		out := w.mustCLI(w.token, append([]string{"instance", "exec", name, "--project", "one", "--timeout", "600s", "--"}, c.argv...)...)
		if !strings.Contains(out, c.want) {
			t.Errorf("output of %v, want %q:\n%s", c.argv, c.want, out)
		}
	}
}

// mainJob: a tenant's CUDA programs in an instance with a virtual GPU, as the README describes,
// in a Debian that cloud-init has set up.
func mainJob(t *testing.T, w *world) {
	w.debian.booted(t, "created, while other parts ran", w.created)
	w.cuda(t, "main")
	if out, err := w.cli(w.token, "instance", "exec", "main", "--project", "one", "--", "sh", "-c", "exit 7"); err == nil || !strings.Contains(err.Error(), "7") {
		t.Errorf("exec of \"exit 7\": error %v, want exit code 7: %s", err, out)
	}
	w.debian.setUp(t)
	const check = `perl -e '$h = (getpwnam "debian")[1]; exit(crypt($ARGV[0], $h) ne $h)' `
	w.debian.sh(t, check+consolePassword)
	for script, want := range map[string]string{
		"hostname": "main\n",
		"grep -v cert-authority /home/debian/.ssh/authorized_keys":       publicKey,
		"systemctl --failed --no-legend --plain":                         "",
		"test $(df --output=size -m / | tail -1) -gt 2500 && echo grown": "grown\n",
	} {
		if got := w.debian.sh(t, script); got != want {
			t.Errorf("output of %q = %q, want %q", script, got, want)
		}
	}
	in := w.debian.get(t)
	var err error

	_, err = client.Of[api.Instance](w.stranger).Get(w.ctx, in.Meta.ID, client.Query{})
	codeOf(t, err, api.CodeNotFound)
	_, err = w.stranger.Exec(w.ctx, in.Meta.ID, api.ExecRequest{Argv: []string{"id"}})
	codeOf(t, err, api.CodeNotFound)
	_, err = w.stranger.StopInstance(w.ctx, in.Meta.ID)
	codeOf(t, err, api.CodeNotFound)
	for _, q := range []client.Query{{}, {Project: "two"}} {
		if page, err := client.Of[api.Instance](w.stranger).Page(w.ctx, q); err != nil || len(page.Items) != 0 {
			t.Errorf("instances that another tenant lists = %v (error %v), want none", page.Items, err)
		}
		if page, err := client.Of[api.UsageRecord](w.stranger).Page(w.ctx, q); err != nil || len(page.Items) != 0 {
			t.Errorf("usage that another tenant lists = %v (error %v), want none", page.Items, err)
		}
	}
}

func operatorToken(t *testing.T, w *world) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.data, "node", "operator.key"))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// usageIsExact: when nothing runs on the vGPU any more, the recorded usage equals what gpud
// counted, to the nanosecond, despite every fault before.
func usageIsExact(t *testing.T, w *world) {
	patience.Until(t, time.Minute, "every program has ended", func() bool { v, ok := w.vgpu(w.small.id); return ok && len(v.Processes) == 0 })
	w.allRecorded(t)
	inv, err := w.operator.InvoicePreview(w.ctx, "org-one", time.Now().Add(-24*time.Hour), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := w.vgpu(w.small.id)
	var total int64
	share := false
	for _, l := range inv.Lines {
		total += l.AmountMicros
		if l.Resource != w.small.id {
			continue
		}
		share = share || l.Meter == api.MeterGPUShare && l.AmountMicros > 0
		if l.Meter == api.MeterGPU { // GPU time that is covered by the share is paid with the share
			t.Errorf("got the line %+v, want none: gpud counted %d ns, which its reserved share covers", l, v.Usage.GPUNanos)
		}
	}
	if !share || total != inv.TotalMicros {
		t.Errorf("invoice has a line for the reserved share = %t, want true; sum of lines = %d, want the total: %+v", share, total, inv)
	}
}

// recorded returns the usage of a resource by meter, summed over the tenant's records.
func (w *world) recorded(t *testing.T, resource string) map[api.Meter]int64 {
	t.Helper()
	sums := map[api.Meter]int64{}
	for r, err := range client.Of[api.UsageRecord](w.tenant).All(w.ctx, client.Query{Project: "one"}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Spec.Resource == resource {
			sums[r.Spec.Meter] += r.Spec.Quantity
		}
	}
	return sums
}

// allRecorded waits until the tenant's records equal what gpud counted.
func (w *world) allRecorded(t *testing.T) {
	t.Helper()
	var sums map[api.Meter]int64
	var want map[api.Meter]uint64
	same := func() bool {
		v, ok := w.vgpu(w.small.id)
		if !ok {
			return false
		}
		u := v.Usage
		want = map[api.Meter]uint64{api.MeterGPU: u.GPUNanos, api.MeterVRAM: u.VRAMByteSeconds, api.MeterCopy: u.BytesToDevice + u.BytesFromDevice, api.MeterLaunch: u.Launches}
		sums = w.recorded(t, w.small.id)
		for m, n := range want {
			if n == 0 || sums[m] != int64(n) {
				return false
			}
		}
		return true
	}
	for watch := patience.Start(); !same(); time.Sleep(500 * time.Millisecond) {
		if watch.Over(time.Minute) {
			t.Fatalf("recorded usage after a minute = %v, want %v as counted by gpud", sums, want)
		}
	}
	if sums[api.MeterVCPU] == 0 || sums[api.MeterMemory] == 0 {
		t.Errorf("recorded usage = %v, want vCPU and memory of the instance as well", sums)
	}
	t.Logf("recorded as counted: %v", want)
}
