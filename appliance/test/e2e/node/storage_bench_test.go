package node_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

const storageRounds = 3

// BenchmarkStorage measures volumes with fio in a guest, encrypted and not, each with the layer
// below as its baseline, and how long it takes from the API request until a volume or a port is
// usable. It prints its samples itself in the format of "go test -bench";
// installer/dev/bench.sh turns them into a table.
func BenchmarkStorage(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("libvirt's system connection needs root: run as root")
	}
	for _, program := range []string{"fio", "virsh", "ovs-vsctl", "ceph-osd"} {
		if _, err := exec.LookPath(program); err != nil {
			b.Skipf("%v: run installer/dev/setup.sh", err)
		}
	}
	for _, c := range []struct {
		name    string
		measure func(*testing.T)
	}{{"pool=local", localStorage}, {"pool=ceph", cephStorage}} {
		b.Run(c.name, func(b *testing.B) {
			if _, err := os.Stat(filepath.Join(buildDir(), "images", "debian-guest.qcow2")); err != nil {
				b.Skipf("%v: run installer/guest/build.sh", err)
			}
			// The helpers that start a node need a *testing.T.
			every := func(_, _ string) (bool, error) { return true, nil }
			if !testing.RunTests(every, []testing.InternalTest{{Name: "Storage/" + c.name, F: c.measure}}) {
				b.Fatal("measurement failed: see its output above")
			}
		})
	}
}

func buildDir() string {
	if dir := os.Getenv("BASALT_BUILD"); dir != "" {
		return dir
	}
	return "../../../../build"
}

func sample(name string, value float64, unit string) {
	fmt.Printf("Benchmark%s\t1\t%.4g %s\n", name, value, unit)
}

func fioSamples(where string, iops map[string]float64) {
	for _, j := range fioJobs {
		v, unit := j.value(iops[j.name])
		sample("Storage/"+where+"/"+j.name, v, unit)
	}
}

// localStorage measures qcow2 files on this machine's disk; its baseline is a plain file there.
func localStorage(t *testing.T) {
	prepared(t)
	w := &world{node: newNode(t, programs(t), t.TempDir(), "--network", "ovn", "--datapath", "netdev")}
	tenants(t, w)
	token := operatorToken(t, w)
	w.mustCLI(token, "image", "import", "debian", "--file", guestImage(t, "debian"), "--format", "qcow2", "--public", "--wait", "--timeout", "280s")
	began := time.Now()
	g := w.create(t, "db", "guest", "debian", nil)
	g.booted(t, "created", began)
	portTimes(t, w)
	s := storageBench{g, token, "local"}
	s.tools(t)
	for range storageRounds {
		s.file(t)
		s.volume(t, false)
		s.volume(t, true)
		s.fileByHand(t)
		s.ways(t)
	}
	s.end(t)
}

// cephStorage measures images in a Ceph of three daemons on this machine, whose disks are in
// memory; its baseline is rbd bench.
func cephStorage(t *testing.T) {
	prepared(t)
	shm, disks := cephDisks(t, 3)
	data := filepath.Join(shm, "node")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, programs(t), data, "--disks", shm+"/disk*")
	token := operatorToken(t, &world{node: n})
	t.Cleanup(func() { endCeph(n) })
	names := n.diskNames(t, token, len(disks))
	n.mustCLI(token, "ceph", "enable", "--replicas", "2", "--failure-domain", "osd")
	for _, name := range names {
		n.mustCLI(token, "disk", "use", name, "ceph")
	}
	for _, name := range names {
		n.mustCLI(token, "disk", "use", name, "ceph", "--wait", "--timeout", "300s")
	}
	s := storageBench{cephGuest(t, n, token, "debian"), token, api.PoolCeph}
	s.tools(t)
	for range storageRounds {
		s.rbdBench(t)
		s.volume(t, false)
		s.volume(t, true)
		s.rbdByHand(t)
	}
	s.end(t)
}

// storageBench is a pool, and a guest with volumes in it.
type storageBench struct {
	g     guest
	token string // the operator's
	pool  string
}

const fioHome = "/mnt" // mount point in the guest

// tools attaches a volume with fio to the guest and mounts it.
func (s storageBench) tools(t *testing.T) {
	t.Helper()
	n := s.g.n
	n.mustCLI(s.token, "image", "import", "fio", "--file", fioDisk(t), "--format", "qcow2", "--public", "--wait")
	v := s.create(t, api.VolumeSpec{Image: "fio"})
	s.g.sh(t, "mount -o ro "+s.g.device(t, v.Meta.ID)+" "+fioHome)
}

func (s storageBench) create(t *testing.T, spec api.VolumeSpec) api.Volume {
	t.Helper()
	spec.Instance, spec.Pool = api.InstanceID(s.g.id), s.pool
	v, err := client.Of[api.Volume](s.g.c).Create(s.g.n.ctx, api.Volume{Meta: api.Meta{Name: fmt.Sprintf("v-%d", time.Now().UnixNano()), Project: "one"}, Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// volume creates a volume for the running guest, measures it, and deletes it.
func (s storageBench) volume(t *testing.T, encrypted bool) {
	t.Helper()
	name := s.pool
	if encrypted {
		name += "-encrypted"
	}
	began := time.Now()
	v := s.create(t, api.VolumeSpec{SizeBytes: fioBytes, Encrypted: encrypted})
	device := s.g.device(t, v.Meta.ID)
	sample("Usable/"+name, time.Since(began).Seconds(), "s")
	fioSamples(name, s.g.fio(t, device, ""))
	for _, verb := range []string{"detach", "delete"} {
		s.g.n.mustCLI(s.token, "volume", verb, v.Meta.ID, "--wait")
	}
}

// end deletes what the benchmark created in the guest; the rest is deleted with the node.
func (s storageBench) end(t *testing.T) {
	t.Helper()
	s.g.sh(t, "umount "+fioHome)
	s.g.remove(t)
}

// device waits until the guest has a disk of that serial, and returns its path.
func (g guest) device(t *testing.T, serial string) string {
	t.Helper()
	path := "/dev/disk/by-id/virtio-" + serial
	g.run(t, "udevadm", "wait", "--timeout=120", path)
	return path
}

// run runs a program in the guest that may take minutes.
func (g guest) run(t *testing.T, argv ...string) []byte {
	t.Helper()
	r, err := g.c.Exec(g.n.ctx, g.id, api.ExecRequest{Argv: argv, TimeoutSeconds: 300})
	if err != nil || r.ExitCode != 0 || r.Truncated {
		t.Fatalf("in the guest, %q: %v, exit code %d\n%s%s", argv, err, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

func (g guest) fio(t *testing.T, disk, more string) map[string]float64 {
	t.Helper()
	unix.Sync() // exclude earlier writes from this measurement
	g.writeProgram(t, "/root/job", []byte(fioFile(disk, true)+more))
	out := g.run(t, fioHome+"/loader", "--library-path", fioHome+"/lib", fioHome+"/fio", "--output-format=json", "/root/job")
	iops, err := parseFio(out)
	if err != nil {
		t.Fatal(err)
	}
	return iops
}
