package node_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/memory"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestCeph: a node with three disks keeps two copies of everything. A small guest boots from
// Ceph, and continues to write while the daemon of a disk is killed and restarted. Then
// everything is removed, and the disks are as empty as before.
func TestCeph(t *testing.T) {
	prepared(t)
	shm, disks := cephDisks(t, 3)
	data := filepath.Join(shm, "node") // in memory, so that the monitors and the import of the image do not slow down other users of this machine's disk
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, programs(t), data, "--disks", shm+"/disk*")
	key, err := os.ReadFile(filepath.Join(n.data, "node", "operator.key"))
	if err != nil {
		t.Fatal(err)
	}
	token := string(key)
	t.Cleanup(func() { endCeph(n) })
	failed.Keep(t, n.keepCeph) // before the node is stopped
	began := time.Now()
	progress := func(what string) { t.Logf("%5.1f s: %s", time.Since(began).Seconds(), what) }

	names := n.diskNames(t, token, len(disks))
	n.mustCLI(token, "ceph", "enable", "--replicas", "2", "--failure-domain", "osd")
	for _, name := range names {
		n.mustCLI(token, "disk", "use", name, "ceph")
	}
	for _, name := range names {
		n.mustCLI(token, "disk", "use", name, "ceph", "--wait", "--timeout", "300s")
	}
	patience.Until(t, 2*time.Minute, "Ceph is ready", func() bool {
		c, err := client.Of[api.CephCluster](n.operator).Get(n.ctx, api.CephName, client.Query{})
		return err == nil && c.Status.Phase == api.CephReady && c.Status.OsdsUp == 3
	})
	progress("Ceph uses the three disks")

	g := cephGuest(t, n, token, "small")
	progress("a guest has booted from Ceph")
	n.mustCLI(token, "volume", "create", "data", "--project", "one", "--size", "64MiB", "--instance", "db", "--wait")
	v, err := client.Of[api.Volume](n.operator).Get(n.ctx, "data", client.Query{Project: "one"})
	if err != nil || v.Assignment.Pool != api.PoolCeph {
		t.Fatalf("volume data is in pool %q (error %v), want %s", v.Assignment.Pool, err, api.PoolCeph)
	}
	device := "/dev/disk/by-id/virtio-" + v.Meta.ID
	patience.Until(t, time.Minute, "the guest sees the volume", func() bool {
		r, err := g.c.Exec(n.ctx, g.id, api.ExecRequest{Argv: []string{"test", "-e", device}})
		return err == nil && r.ExitCode == 0
	})
	g.writeProgram(t, "/root/verify", verifyProgram(t))
	g.sh(t, "(setsid sh -c '/root/verify "+device+" 3600 /root/stop >/root/out 2>/root/err; echo $? >/root/code' >/dev/null 2>&1 &)")
	patience.Until(t, time.Minute, "the guest writes", func() bool {
		return g.sh(t, "d=$(readlink -f "+device+"); awk '{ print ($5 > 100) }' /sys/block/${d#/dev/}/stat") == "1\n"
	})
	osds := n.of("ceph-osd", "")
	if len(osds) != 3 {
		t.Fatalf("running OSDs = %v, want 3", osds)
	}
	kill(t, osds[0], syscall.SIGKILL)
	progress("the daemon of a disk is killed")
	patience.Until(t, 3*time.Minute, "the daemon is back", func() bool {
		now := n.of("ceph-osd", "")
		return len(now) == 3 && len(fresh(osds, now)) == 1 && n.osdsUp() == 3
	})
	progress("the daemon is running again")
	g.sh(t, "touch /root/stop")
	var code string
	patience.Until(t, 3*time.Minute, "the guest has verified", func() bool {
		r, err := g.c.Exec(n.ctx, g.id, api.ExecRequest{Argv: []string{"cat", "/root/code"}})
		code = strings.TrimSpace(string(r.Stdout))
		return err == nil && r.ExitCode == 0 && code != ""
	})
	out := g.sh(t, "cat /root/out /root/err")
	var seen struct{ Writes, Read, Wrong, LongestMs int }
	if err := json.Unmarshal([]byte(out), &seen); err != nil || code != "0" || seen.Writes == 0 || seen.Read == 0 || seen.Wrong != 0 {
		t.Errorf("verify in the guest: exit code %s, error %v, want 0 and no wrong block:\n%s", code, err, out)
	}
	progress(fmt.Sprintf("%d writes, none lost; the longest took %d ms", seen.Writes, seen.LongestMs))
	if log := g.sh(t, "dmesg | grep -i 'I/O error' || true"); log != "" {
		t.Errorf("I/O errors in the guest's kernel log, want none:\n%s", log)
	}

	n.mustCLI(token, "instance", "delete", "db", "--project", "one", "--wait")
	n.mustCLI(token, "volume", "delete", "data", "--project", "one", "--wait")
	// A root volume is deleted after its instance, and needs its image until then.
	patience.Until(t, 2*time.Minute, "the root volume is deleted", func() bool {
		page, err := client.Of[api.Volume](n.operator).Page(n.ctx, client.Query{})
		return err == nil && len(page.Items) == 0
	})
	n.mustCLI(token, "image", "delete", "small", "--wait")
	for _, name := range names {
		n.mustCLI(token, "disk", "release", name)
	}
	n.mustCLI(token, "ceph", "disable")
	for _, name := range names {
		n.mustCLI(token, "disk", "release", name, "--wait", "--timeout", "300s")
	}
	progress("the disks are free")
	patience.Until(t, time.Minute, "the node has no files of Ceph", func() bool {
		_, err := os.Stat(filepath.Join(n.data, "node", "ceph"))
		return os.IsNotExist(err)
	})
	n.stop()
}

// cephDisks creates loop devices on files in memory, because an OSD waits for its disk at every
// write.
func cephDisks(t *testing.T, count int) (dir string, loops []string) {
	t.Helper()
	dir, err := memory.Folder("e2e", uint64(count)<<30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for i := range count {
		path := filepath.Join(dir, fmt.Sprintf("disk%d", i))
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 6*gib); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("losetup", "--find", "--show", path).CombinedOutput()
		if err != nil {
			t.Fatalf("losetup: %v: %s", err, out)
		}
		loop := strings.TrimSpace(string(out))
		loops = append(loops, loop)
		t.Cleanup(func() {
			if out, err := exec.Command("losetup", "--detach", loop).CombinedOutput(); err != nil {
				t.Errorf("detach loop device %s: %v: %s", loop, err, out)
			}
		})
	}
	return dir, loops
}

// diskNames waits until the node has reported that many free disks.
func (n *node) diskNames(t *testing.T, token string, want int) (names []string) {
	t.Helper()
	patience.Until(t, time.Minute, "the node reports its disks", func() bool {
		page, err := client.Of[api.Disk](n.client(token)).Page(n.ctx, client.Query{})
		names = nil
		for _, d := range page.Items {
			if d.Status.State == api.DiskFree {
				names = append(names, d.Meta.Name)
			}
		}
		return err == nil && len(names) == want
	})
	return names
}

// cephGuest creates a guest of that image, whose root volume is in Ceph.
func cephGuest(t *testing.T, n *node, token, image string) guest {
	t.Helper()
	file := filepath.Join(n.data, "tenant.yaml")
	text := strings.NewReplacer("ORG", "org-one", "PRJ", "one").Replace(manifest) + `---
kind: Flavor
meta: {name: guest}
spec: {vcpus: 1, memoryBytes: 768MiB, rootBytes: 3GiB}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	n.mustCLI(token, "apply", "-f", file)
	n.mustCLI(token, "image", "import", image, "--file", guestImage(t, image), "--format", "qcow2", "--public", "--wait", "--timeout", "280s")
	began := time.Now()
	n.mustCLI(token, "instance", "create", "db", "--project", "one", "--flavor", "guest", "--image", image, "--wait", "--timeout", "280s")
	in, err := client.Of[api.Instance](n.operator).Get(n.ctx, "db", client.Query{Project: "one"})
	if err != nil {
		t.Fatal(err)
	}
	root, err := client.Of[api.Volume](n.operator).Get(n.ctx, string(in.Assignment.RootVolume), client.Query{})
	if err != nil || root.Assignment.Pool != api.PoolCeph {
		t.Fatalf("root volume is in pool %q (error %v), want %s", root.Assignment.Pool, err, api.PoolCeph)
	}
	g := guest{n, n.operator, in.Meta.ID}
	g.booted(t, "from Ceph", began)
	return g
}

func (n *node) osdsUp() int {
	var st struct {
		Up int `json:"num_up_osds"`
	}
	out, err := exec.Command("ceph", "--conf", filepath.Join(n.data, "node", "ceph", "ceph.conf"), "--connect-timeout", "10", "--format", "json", "osd", "stat").Output()
	if err != nil || json.Unmarshal(out, &st) != nil {
		return -1
	}
	return st.Up
}

// keepCeph keeps the state that Ceph reports.
func (n *node) keepCeph(f failed.Folder) {
	conf := filepath.Join(n.data, "node", "ceph", "ceph.conf")
	for _, ask := range []string{"status", "health detail", "osd tree", "df detail"} {
		f.Output("ceph-"+strings.ReplaceAll(ask, " ", "-")+".txt", append([]string{"ceph", "--conf", conf, "--connect-timeout", "30"}, strings.Fields(ask)...)...)
	}
	f.Output("ceph-processes.txt", "ps", "-eo", "pid,ppid,stat,wchan:20,etimes,time,rss,args")
}

// endCeph kills the daemons of a failed test, which outlive basaltd by design.
func endCeph(n *node) {
	n.basaltd.end(syscall.SIGKILL)
	for _, pid := range n.of("ceph-", "") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func verifyProgram(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "verify")
	if text, err := exec.Command("gcc", "-std=gnu11", "-O2", "-Wall", "-Werror", "-s", "-o", out, "testdata/verify.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
