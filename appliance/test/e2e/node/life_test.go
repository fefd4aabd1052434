package node_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/hypervisor"
)

// upload makes a public image from bytes and returns what came of it.
func (w *world) upload(t *testing.T, name string, spec api.ImageSpec, content []byte) (api.Image, error) {
	t.Helper()
	spec.Public = true
	img, err := client.Of[api.Image](w.operator).Create(w.ctx, api.Image{Meta: api.Meta{Name: name}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.operator.PutImageContent(w.ctx, img.Meta.ID, strings.NewReader(string(content)), int64(len(content)))
	now, err2 := client.Of[api.Image](w.operator).Get(w.ctx, img.Meta.ID, client.Query{})
	if err2 != nil {
		t.Fatal(err2)
	}
	return now, err
}

// badImages: what is no image, or not the one that was meant, is refused and says so.
func badImages(t *testing.T, w *world) {
	img, err := w.upload(t, "text", api.ImageSpec{Format: "qcow2"}, []byte(strings.Repeat("this is no disk\n", 1000)))
	codeOf(t, err, api.CodeInvalid)
	if img.Status.Phase != api.ImageFailed || img.Status.LastError == "" {
		t.Errorf("status %+v", img.Status)
	}
	t.Logf("no image: %v", err)
	img, err = w.upload(t, "other-bytes", api.ImageSpec{Format: "raw", Sha256: strings.Repeat("ab", 32)}, make([]byte, mib))
	codeOf(t, err, api.CodeInvalid)
	if img.Status.Phase != api.ImageFailed || !strings.Contains(img.Status.LastError, "SHA-256") {
		t.Errorf("status %+v", img.Status)
	}
	t.Logf("wrong checksum: %v", err)
	img, err = w.upload(t, "blank", api.ImageSpec{Format: "raw"}, bootSector(mib))
	if err != nil || img.Status.Phase != api.ImageReady {
		t.Fatalf("a blank disk: %v %+v", err, img.Status)
	}
}

// bootSector is a disk that boots to a halt with interrupts off: it hears no
// power button and takes no processor time.
func bootSector(size int) []byte {
	disk := make([]byte, size)
	copy(disk, []byte{0xfa, 0xf4, 0xeb, 0xfc}) // cli; again: hlt; jmp again-1
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}

func (w *world) create(t *testing.T, name, flavor, image string, vgpu *api.VGPUSpec) guest {
	t.Helper()
	in, err := client.Of[api.Instance](w.tenant).Create(w.ctx, api.Instance{Meta: api.Meta{Name: name, Project: "one"},
		Spec: api.InstanceSpec{Flavor: api.FlavorID(flavor), Image: api.ImageID(image), Vgpu: vgpu}})
	if err != nil {
		t.Fatal(err)
	}
	return guest{w.node, w.tenant, in.Meta.ID}
}

// remove deletes an instance and waits until it is gone.
func (g guest) remove(t *testing.T) {
	t.Helper()
	if _, err := client.Of[api.Instance](g.c).Delete(g.n.ctx, g.id); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "the instance to be gone", func() bool {
		_, err := client.Of[api.Instance](g.c).Get(g.n.ctx, g.id, client.Query{})
		return api.CodeOf(err) == api.CodeNotFound && err != nil
	})
}

// fitsNowhere: too large for the node or the card says which, and why.
func fitsNowhere(t *testing.T, w *world) {
	for _, c := range []struct {
		name, flavor string
		vgpu         *api.VGPUSpec
		want         string
	}{
		{"monster", "monster", nil, "200 vCPUs"},
		{"greedy", "tiny", &api.VGPUSpec{VramBytes: 2 * cardVRAM}, "VRAM"},
		{"nopool", "tiny", &api.VGPUSpec{VramBytes: 64 * mib, Pool: "nowhere"}, "pool"},
	} {
		in, err := client.Of[api.Instance](w.tenant).Create(w.ctx, api.Instance{Meta: api.Meta{Name: c.name, Project: "one"},
			Spec: api.InstanceSpec{Flavor: api.FlavorID(c.flavor), Image: "blank", Vgpu: c.vgpu}})
		if err != nil { // refused at once is as good
			t.Logf("%s: %v", c.name, err)
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) {
				t.Errorf("%s: the error names no %s: %v", c.name, c.want, err)
			}
			continue
		}
		g := guest{w.node, w.tenant, in.Meta.ID}
		patience.Until(t, 20*time.Second, "a reason", func() bool { return g.get(t).Assignment.Reason != "" })
		in = g.get(t)
		t.Logf("%s: %s", c.name, in.Assignment.Reason)
		if in.Assignment.Node != "" || !strings.Contains(strings.ToLower(in.Assignment.Reason), strings.ToLower(c.want)) {
			t.Errorf("%s: assignment %+v names no %s", c.name, in.Assignment, c.want)
		}
		g.remove(t)
	}
}

// killedWhileCreating kills basaltd at several moments of an instance's
// beginning, and then of its end: there is exactly one machine, then none.
// The instance boots nothing and does not hear the power button.
func killedWhileCreating(t *testing.T, w *world) {
	w.grace = shortGrace
	for i, after := range []time.Duration{0, 150 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		g := w.create(t, fmt.Sprintf("blank-%d", i), "tiny", "blank", &api.VGPUSpec{VramBytes: 64 * mib})
		time.Sleep(after)
		w.killBasaltd()
		w.startBasaltd()
		in := g.phase(t, api.InstanceRunning, 2*time.Minute) // its network comes back first
		if found := w.domainsOf(g.id); len(found) != 1 || len(w.of("qemu-system", g.id)) != 1 || len(w.of("basalt-vgpu", g.id)) != 1 || !vgpuAlive(in) {
			t.Errorf("killed after %v: domains %v, QEMU %v, backends %v, %+v", after, found, w.of("qemu-system", g.id), w.of("basalt-vgpu", g.id), in.Status)
		}
		if i == 3 {
			w.deaf, w.deafStopped = g, make(chan time.Duration, 1)
			g.stopInBackground(t, w.deafStopped)
			break
		}
		if _, err := client.Of[api.Instance](w.tenant).Delete(w.ctx, g.id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after / 2)
		w.killBasaltd()
		if i == 0 {
			defineOrphan(t, w)
		}
		w.startBasaltd()
		patience.Until(t, time.Minute, "the instance to be gone", func() bool {
			_, err := client.Of[api.Instance](g.c).Get(w.ctx, g.id, client.Query{})
			return err != nil && api.CodeOf(err) == api.CodeNotFound
		})
		patience.Until(t, 20*time.Second, "nothing to be left of it", func() bool { return len(w.domainsOf(g.id))+len(w.of("", g.id)) == 0 })
	}
	patience.Until(t, 30*time.Second, "the orphan to be removed", func() bool { return len(w.domainsOf(orphan)) == 0 })
}

// stopInBackground asks for a stop and delivers how long it took; -1: too long.
func (g guest) stopInBackground(t *testing.T, took chan<- time.Duration) {
	t.Helper()
	if _, err := g.c.StopInstance(g.n.ctx, g.id); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	go func() {
		for watch := patience.Start(); !watch.Over(shortGrace + time.Minute); {
			in, err := client.Of[api.Instance](g.c).Get(g.n.ctx, g.id, client.Query{})
			if err == nil && in.Status.Phase == api.InstanceStopped {
				took <- time.Since(began)
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
		took <- -1
	}()
}

// plugPulled: a guest that does not hear the power button is switched off when
// its grace time is over, and not before.
func plugPulled(t *testing.T, w *world) {
	took := <-w.deafStopped
	t.Logf("a guest that does not shut down was off after %v", took.Round(100*time.Millisecond))
	if took < shortGrace {
		t.Errorf("that is not its grace time of %v", shortGrace)
	}
	w.deaf.remove(t)
	w.grace = longGrace // from the next start on
}

func (w *world) domainsOf(id string) (found []string) {
	for _, d := range domains(w.id) {
		if strings.Contains(d, id) {
			found = append(found, d)
		}
	}
	return found
}

const orphan = "ins-0123456789ff"

// defineOrphan leaves a domain as a control plane that was restored from an old
// backup would find it: marked as this node's, of an instance that nobody knows.
func defineOrphan(t *testing.T, w *world) {
	t.Helper()
	file := filepath.Join(w.data, "orphan.xml")
	xml, err := hypervisor.Domain{ID: orphan, Node: api.NodeID(w.node.id), VCPUs: 1, MemoryBytes: 64 * mib, Accelerator: hypervisor.TCG,
		SerialSocket: filepath.Join(w.run, "orphan.serial"), SerialLog: filepath.Join(w.data, "orphan.log")}.XML()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"define", file}, {"start", "basalt-" + orphan}} {
		if out, err := exec.Command("virsh", append([]string{"-q", "-c", "qemu:///system"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("virsh %v: %v\n%s", args, err, out)
		}
	}
	if len(w.domainsOf(orphan)) != 1 {
		t.Fatal("the orphan is not there")
	}
}

// memory of the guest, in bytes, as it sees it.
func (g guest) memory(t *testing.T) int64 {
	t.Helper()
	kib, err := strconv.ParseInt(strings.TrimSpace(g.sh(t, "awk '/^MemTotal/ { print $2 }' /proc/meminfo")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// resizedAndStopped: a larger flavor changes nothing under a running machine
// and is there after the next start. basaltd is killed right after it was
// asked to stop the machine.
func resizedAndStopped(t *testing.T, w *world) {
	before := w.small.memory(t) // the guest answers: it hears the power button, too
	in := w.small.get(t)
	w.mustCLI(w.token, "instance", "resize", "small", "--project", "one", "--flavor", "small-big")
	patience.Until(t, time.Minute, "the agent to know the new flavor", func() bool {
		now := w.small.get(t)
		return now.Spec.Flavor != in.Spec.Flavor && now.Status.ObservedGeneration == now.Meta.Generation
	})
	if now := w.small.get(t); now.Assignment.MemoryBytes != in.Assignment.MemoryBytes || now.Status.Phase != api.InstanceRunning || w.small.memory(t) != before {
		t.Errorf("resized while running: %+v became %+v", in.Assignment, now.Assignment)
	}
	began := time.Now()
	if _, err := w.tenant.StopInstance(w.ctx, w.small.id); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "the machine to be stopping", func() bool {
		phase := w.small.get(t).Status.Phase
		return phase == api.InstanceStopping || phase == api.InstanceStopped
	})
	w.killBasaltd()
	w.startBasaltd()
	w.small.phase(t, api.InstanceStopped, 2*time.Minute)
	t.Logf("stopped after %v, with basaltd killed meanwhile", time.Since(began).Round(100*time.Millisecond))
	w.small.poweredDown(t)
	if left := w.of("", w.small.id); len(left) != 0 {
		t.Errorf("processes of a stopped instance: %v", left)
	}
	v, ok := w.vgpu(w.small.id)
	if !ok || v.Deleted || v.VRAMUsed != 0 {
		t.Errorf("a stopped instance's vGPU is %+v", v)
	}
	began = time.Now()
	if _, err := w.tenant.StartInstance(w.ctx, w.small.id); err != nil {
		t.Fatal(err)
	}
	w.small.booted(t, "started with more memory", began)
	if now := w.small.memory(t); now < before+400*mib {
		t.Errorf("the guest had %d bytes and has %d", before, now)
	}
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("vecadd: %s", out)
	}
}

// poweredDown checks that the guest has ended by itself, and was not switched off.
func (g guest) poweredDown(t *testing.T) {
	t.Helper()
	log, err := g.c.ConsoleLog(g.n.ctx, g.id, 0)
	if err != nil || !strings.Contains(string(log), "Power down") {
		t.Errorf("the guest did not shut down by itself (%v); its console ends with:\n%s", err, log[max(0, len(log)-500):])
	}
}

// poweredOff: Debian, which is up, shuts down at the press of the button, and
// goes with everything.
func poweredOff(t *testing.T, w *world) {
	began := time.Now()
	if _, err := w.tenant.StopInstance(w.ctx, w.debian.id); err != nil {
		t.Fatal(err)
	}
	w.debian.phase(t, api.InstanceStopped, 2*time.Minute)
	t.Logf("stopped after %v", time.Since(began).Round(100*time.Millisecond))
	w.debian.poweredDown(t)
	w.debian.remove(t)
}

// deleted: a running instance goes with everything, and its last usage is on the books.
func deleted(t *testing.T, w *world) {
	w.small.remove(t)
	w.allRecorded(t)
	var left []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("left: %q", left)
		}
	})
	patience.Until(t, 30*time.Second, "the root volume to go with it", func() bool {
		volumes, _ := filepath.Glob(filepath.Join(w.data, "node", "storage", "volumes", "*"))
		usage, _ := filepath.Glob(filepath.Join(w.data, "node", "usage", "*"))
		left = append(volumes, usage...)
		return len(left) == 0
	})
	if v, _ := w.vgpu(w.small.id); !v.Deleted {
		t.Errorf("gpud still has %+v", v)
	}
	gpus, err := w.control.GPUs(w.ctx)
	if err != nil || len(gpus) != 1 || gpus[0].VRAMUsed != 0 || gpus[0].VRAMReserved != 0 {
		t.Errorf("the card: %+v, %v", gpus, err)
	}
}
