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

// upload creates a public image from bytes and returns the resulting image and the error of the
// upload.
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

// badImages: invalid images, and images with an unexpected checksum, are refused with an error
// that names the reason.
func badImages(t *testing.T, w *world) {
	img, err := w.upload(t, "text", api.ImageSpec{Format: "qcow2"}, []byte(strings.Repeat("this is no disk\n", 1000)))
	codeOf(t, err, api.CodeInvalid)
	if img.Status.Phase != api.ImageFailed || img.Status.LastError == "" {
		t.Errorf("status of an image that is not qcow2 = %+v, want phase Failed and an error", img.Status)
	}
	t.Logf("upload of an invalid image: %v", err)
	img, err = w.upload(t, "other-bytes", api.ImageSpec{Format: "raw", Sha256: strings.Repeat("ab", 32)}, make([]byte, mib))
	codeOf(t, err, api.CodeInvalid)
	if img.Status.Phase != api.ImageFailed || !strings.Contains(img.Status.LastError, "SHA-256") {
		t.Errorf("status of an image with a wrong checksum = %+v, want phase Failed and an error with SHA-256", img.Status)
	}
	t.Logf("upload with a wrong checksum: %v", err)
	img, err = w.upload(t, "blank", api.ImageSpec{Format: "raw"}, bootSector(mib))
	if err != nil || img.Status.Phase != api.ImageReady {
		t.Fatalf("upload of a blank disk: %v, status %+v, want phase Ready", err, img.Status)
	}
}

// bootSector returns a disk that boots to a halt with interrupts disabled: it ignores the power
// button and uses no processor time.
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

// remove deletes an instance and waits until it no longer exists.
func (g guest) remove(t *testing.T) {
	t.Helper()
	if _, err := client.Of[api.Instance](g.c).Delete(g.n.ctx, g.id); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "the instance no longer exists", func() bool {
		_, err := client.Of[api.Instance](g.c).Get(g.n.ctx, g.id, client.Query{})
		return api.CodeOf(err) == api.CodeNotFound && err != nil
	})
}

// fitsNowhere: an instance that is too large for the node or the GPU has a reason that names
// the missing resource.
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
		if err != nil { // an immediate refusal is acceptable, too
			t.Logf("%s: %v", c.name, err)
			if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.want)) {
				t.Errorf("create %s: error %v, want it to contain %q", c.name, err, c.want)
			}
			continue
		}
		g := guest{w.node, w.operator, in.Meta.ID} // tenants read less of it
		patience.Until(t, 20*time.Second, "a reason", func() bool { return g.get(t).Assignment.Reason != "" })
		in = g.get(t)
		t.Logf("%s: %s", c.name, in.Assignment.Reason)
		if in.Assignment.Node != "" || !strings.Contains(strings.ToLower(in.Assignment.Reason), strings.ToLower(c.want)) {
			t.Errorf("%s: assignment %+v, want no node and a reason with %q", c.name, in.Assignment, c.want)
		}
		g.remove(t)
	}
}

// killedWhileCreating kills basaltd at several points of the creation and then of the deletion
// of an instance: there is exactly one domain, then none. The instance boots nothing and
// ignores the power button.
func killedWhileCreating(t *testing.T, w *world) {
	w.grace = shortGrace
	for i, after := range []time.Duration{0, 150 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond} {
		g := w.create(t, fmt.Sprintf("blank-%d", i), "tiny", "blank", &api.VGPUSpec{VramBytes: 64 * mib})
		time.Sleep(after)
		w.killBasaltd()
		w.startBasaltd()
		in := g.phase(t, api.InstanceRunning, 2*time.Minute) // its network is restored first
		if found := w.domainsOf(g.id); len(found) != 1 || len(w.of("qemu-system", g.id)) != 1 || len(w.of("basalt-vgpu", g.id)) != 1 || !vgpuAlive(in) {
			t.Errorf("basaltd killed %v after the creation: domains %v, QEMUs %v, backends %v, want one of each; status %+v", after, found, w.of("qemu-system", g.id), w.of("basalt-vgpu", g.id), in.Status)
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
		patience.Until(t, time.Minute, "the instance no longer exists", func() bool {
			_, err := client.Of[api.Instance](g.c).Get(w.ctx, g.id, client.Query{})
			return err != nil && api.CodeOf(err) == api.CodeNotFound
		})
		patience.Until(t, 20*time.Second, "no domain or process is left of it", func() bool { return len(w.domainsOf(g.id))+len(w.of("", g.id)) == 0 })
	}
	patience.Until(t, 30*time.Second, "the orphaned domain is removed", func() bool { return len(w.domainsOf(orphan)) == 0 })
}

// stopInBackground requests a stop and sends how long it took, or -1 if it took too long.
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

// plugPulled: a guest that ignores the power button is powered off when its grace time has
// passed, and not before.
func plugPulled(t *testing.T, w *world) {
	took := <-w.deafStopped
	t.Logf("a guest that does not shut down was off after %v", took.Round(100*time.Millisecond))
	if took < shortGrace {
		t.Errorf("guest that ignores the power button was off after %v, want at least the grace time of %v", took, shortGrace)
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

// defineOrphan creates a domain as a control plane that was restored from an old backup would
// find it: it is marked as this node's, but its instance is unknown.
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
		t.Fatalf("domains of %s = %v, want one", orphan, w.domainsOf(orphan))
	}
}

// memory returns the memory in bytes that the guest's kernel reports.
func (g guest) memory(t *testing.T) int64 {
	t.Helper()
	kib, err := strconv.ParseInt(strings.TrimSpace(g.sh(t, "awk '/^MemTotal/ { print $2 }' /proc/meminfo")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// resizedAndStopped: a larger flavor changes nothing in a running instance and takes effect at
// the next start. basaltd is killed immediately after the instance was asked to stop.
func resizedAndStopped(t *testing.T, w *world) {
	before := w.small.memory(t) // the guest answers, so it handles the power button, too
	in := w.small.get(t)
	w.mustCLI(w.token, "instance", "resize", "small", "--project", "one", "--flavor", "small-big")
	patience.Until(t, time.Minute, "the agent has observed the new flavor", func() bool {
		now := w.small.get(t)
		return now.Spec.Flavor != in.Spec.Flavor && now.Status.ObservedGeneration == now.Meta.Generation
	})
	if now := w.small.get(t); now.Assignment.MemoryBytes != in.Assignment.MemoryBytes || now.Status.Phase != api.InstanceRunning || w.small.memory(t) != before {
		t.Errorf("resize while running: assignment %+v in phase %s, want %+v and an unchanged running guest", now.Assignment, now.Status.Phase, in.Assignment)
	}
	began := time.Now()
	if _, err := w.tenant.StopInstance(w.ctx, w.small.id); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "the instance is stopping", func() bool {
		phase := w.small.get(t).Status.Phase
		return phase == api.InstanceStopping || phase == api.InstanceStopped
	})
	w.killBasaltd()
	w.startBasaltd()
	w.small.phase(t, api.InstanceStopped, 2*time.Minute)
	t.Logf("stopped after %v, with basaltd killed meanwhile", time.Since(began).Round(100*time.Millisecond))
	w.small.poweredDown(t)
	if left := w.of("", w.small.id); len(left) != 0 {
		t.Errorf("processes of a stopped instance: %v, want none", left)
	}
	v, ok := w.vgpu(w.small.id)
	if !ok || v.Deleted || v.VRAMUsed != 0 {
		t.Errorf("vGPU of a stopped instance = %+v (found: %t), want one without VRAM in use", v, ok)
	}
	began = time.Now()
	if _, err := w.tenant.StartInstance(w.ctx, w.small.id); err != nil {
		t.Fatal(err)
	}
	w.small.booted(t, "started with more memory", began)
	if now := w.small.memory(t); now < before+400*mib {
		t.Errorf("memory of the guest after the resize = %d bytes, want at least %d", now, before+400*mib)
	}
	if out := w.small.sh(t, "/opt/basalt/demo/vecadd"); !strings.Contains(out, "OK") {
		t.Errorf("output of vecadd, want OK: %s", out)
	}
}

// poweredDown checks that the guest has shut down by itself and was not powered off.
func (g guest) poweredDown(t *testing.T) {
	t.Helper()
	log, err := g.c.ConsoleLog(g.n.ctx, g.id, 0)
	if err != nil || !strings.Contains(string(log), "Power down") {
		t.Errorf("guest did not shut down by itself, want \"Power down\" on its console (error %v); the console ends with:\n%s", err, log[max(0, len(log)-500):])
	}
}

// poweredOff: a running Debian shuts down when its power button is pressed, and is deleted
// completely.
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

// deleted: a running instance is deleted completely, and its last usage is recorded.
func deleted(t *testing.T, w *world) {
	w.small.remove(t)
	w.allRecorded(t)
	var left []string
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("files left: %q", left)
		}
	})
	patience.Until(t, 30*time.Second, "its root volume and usage files are deleted", func() bool {
		volumes, _ := filepath.Glob(filepath.Join(w.data, "node", "storage", "volumes", "*"))
		usage, _ := filepath.Glob(filepath.Join(w.data, "node", "usage", "*"))
		left = append(volumes, usage...)
		return len(left) == 0
	})
	if v, _ := w.vgpu(w.small.id); !v.Deleted {
		t.Errorf("vGPU of a deleted instance in gpud = %+v, want it deleted", v)
	}
	gpus, err := w.control.GPUs(w.ctx)
	if err != nil || len(gpus) != 1 || gpus[0].VRAMUsed != 0 || gpus[0].VRAMReserved != 0 {
		t.Errorf("GPUs after the deletion of all instances = %+v (error %v), want one without used or reserved VRAM", gpus, err)
	}
}
