package node_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/storage"
)

// Benchmarks of the layers below, which are the baselines of BenchmarkStorage.

// file measures fio on the node with a plain file in the folder of the volumes, through the
// page cache, as QEMU opens them.
func (s storageBench) file(t *testing.T) {
	t.Helper()
	unix.Sync()
	dir := s.g.n.data
	job, file := filepath.Join(dir, "file.fio"), filepath.Join(dir, "file.raw")
	if err := os.WriteFile(job, []byte(fioFile(file, false)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("fio", "--output-format=json", job).Output()
	if err != nil {
		t.Fatalf("fio: %v\n%s", err, out)
	}
	iops, err := parseFio(out)
	if err != nil {
		t.Fatal(err)
	}
	fioSamples("file", iops)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// rbdBench measures an image in the same pool with rbd bench.
func (s storageBench) rbdBench(t *testing.T) {
	t.Helper()
	s.rbd(t, "create", "--size", "256M", handName)
	bench := func(j fioJob, total string) float64 {
		kind, pattern := "read", "seq"
		if strings.HasSuffix(j.rw, "write") {
			kind = "write"
		}
		if strings.HasPrefix(j.rw, "rand") {
			pattern = "rand"
		}
		rate, err := parseRBD(s.rbd(t, "bench", "--io-type", kind, "--io-pattern", pattern, "--io-size", strings.ToUpper(j.bs),
			"--io-threads", fmt.Sprint(j.depth), "--io-total", total, handName))
		if err != nil {
			t.Fatal(err)
		}
		return rate
	}
	bench(fioJob{fillJob, "write", "1m", 4}, "256M")
	iops := map[string]float64{}
	for _, j := range fioJobs {
		total := "512M"
		if j.bs == "4k" {
			total = "32M"
		}
		iops[j.name] = bench(j, total)
	}
	fioSamples("rbd-bench", iops)
	s.rbd(t, "rm", "--no-progress", handName)
}

func (s storageBench) rbd(t *testing.T, args ...string) string {
	t.Helper()
	return s.g.n.output(t, "rbd", append([]string{"--conf", filepath.Join(s.g.n.data, "node", "ceph", "ceph.conf"), "--pool", storage.Pool}, args...)...)
}

const handName = "by-hand" // name and serial of a disk that is created without Basalt

// fileByHand measures a disk that is created and attached without Basalt.
func (s storageBench) fileByHand(t *testing.T) {
	t.Helper()
	file := filepath.Join(s.g.n.data, handName+".qcow2")
	began := time.Now()
	s.g.n.output(t, "qemu-img", "create", "-q", "-f", "qcow2", file, "256M")
	s.plugByHand(t, began, "file", "qcow2", "<source file='"+file+"'/>")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

// rbdSource matches the source element of the guest's root volume in libvirt's XML.
var rbdSource = regexp.MustCompile(`(?s)(?:<auth .*?</auth>\s*)?<source protocol='rbd' name='([^']*)'.*?</source>`)

// rbdByHand is like fileByHand with an RBD image, which has the source of the root volume with
// another name.
func (s storageBench) rbdByHand(t *testing.T) {
	t.Helper()
	m := rbdSource.FindStringSubmatch(s.g.n.output(t, "virsh", "-q", "-c", "qemu:///system", "dumpxml", s.domain()))
	if m == nil {
		t.Fatal("the domain's XML has no RBD disk, want the root volume in Ceph")
	}
	source := strings.Replace(m[0], "'"+m[1]+"'", "'"+storage.Pool+"/"+handName+"'", 1)
	began := time.Now()
	s.rbd(t, "create", "--size", "256M", handName)
	s.plugByHand(t, began, "network", "raw", source)
	s.rbd(t, "rm", "--no-progress", handName)
}

func (s storageBench) domain() string { return "basalt-" + s.g.id }

func (s storageBench) plugByHand(t *testing.T, began time.Time, kind, format, source string) {
	t.Helper()
	s.withDisk(t, kind, "type='"+format+"'", source, func(string) {
		sample("Usable/"+s.pool+"-by-hand", time.Since(began).Seconds(), "s")
	})
}

// withDisk attaches a disk while f runs. f gets its path in the guest.
func (s storageBench) withDisk(t *testing.T, kind, driver, source string, f func(device string)) {
	t.Helper()
	xml := filepath.Join(s.g.n.data, handName+".xml")
	text := fmt.Sprintf("<disk type='%s' device='disk'><driver name='qemu' %s/>%s<target dev='vdy' bus='virtio'/><serial>%s</serial></disk>",
		kind, driver, source, handName)
	if err := os.WriteFile(xml, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.g.n.output(t, "virsh", "-q", "-c", "qemu:///system", "attach-device", s.domain(), xml, "--live")
	device := s.g.device(t, handName)
	f(device)
	s.g.n.output(t, "virsh", "-q", "-c", "qemu:///system", "detach-device", s.domain(), xml, "--live")
	s.g.run(t, "udevadm", "wait", "--removed", "--timeout=120", device)
}

// portTimes measures the time from the API request until the port of an instance is up in OVN
// and its flows are in the switch. The baseline is a port that is created with the tools of OVN
// and Open vSwitch.
func portTimes(t *testing.T, w *world) {
	t.Helper()
	if _, err := w.upload(t, "blank", api.ImageSpec{Format: "raw"}, bootSector(mib)); err != nil {
		t.Fatal(err)
	}
	for range storageRounds {
		began := time.Now()
		g := w.create(t, "port", "tiny", "blank", nil)
		up := w.portUp(t, api.PortName(api.InstanceID(g.id), 0))
		sample("Usable/port", up.Sub(began).Seconds(), "s")
		g.remove(t)

		began = time.Now()
		w.nbctl(t, "ls-add", handName, "--", "lsp-add", handName, "hand0", "--", "lsp-set-addresses", "hand0", "0a:00:00:00:99:02 10.99.0.2")
		w.vsctl(t, "add-port", "br-int", "hand0", "--", "set", "interface", "hand0", "type=internal", "external_ids:iface-id=hand0")
		up = w.portUp(t, "hand0")
		sample("Usable/port-by-hand", up.Sub(began).Seconds(), "s")
		w.vsctl(t, "del-port", "br-int", "hand0")
		w.nbctl(t, "--if-exists", "ls-del", handName)
	}
}

func (n *node) vsctl(t *testing.T, args ...string) string {
	t.Helper()
	return n.output(t, "ovs-vsctl", append([]string{"--db=unix:" + filepath.Join(n.run, "ovs", "db.sock"), "--timeout=60"}, args...)...)
}

// portUp waits until OVN reports the port as up and ovn-controller has installed all of its
// flows. It checks that there are any.
func (n *node) portUp(t *testing.T, port string) (up time.Time) {
	t.Helper()
	n.output(t, "ovn-nbctl", "--db=unix:"+filepath.Join(n.run, "ovn", "ovnnb_db.sock"), "--timeout=120", "wait-until", "Logical_Switch_Port", port, "up=true")
	found := strings.Fields(n.vsctl(t, "--bare", "--columns=name,ofport", "find", "Interface", "external_ids:iface-id="+port))
	if len(found) != 2 {
		t.Fatalf("interfaces of port %s = %q, want one with name and number", port, found)
	}
	n.vsctl(t, "wait-until", "Interface", found[0], "external_ids:ovn-installed=true")
	up = time.Now()
	if flows := n.output(t, "ovs-ofctl", "dump-flows", "unix:"+filepath.Join(n.run, "ovs", "br-int.mgmt"), "in_port="+found[1]); !strings.Contains(flows, "actions=") {
		t.Errorf("flows of port %s, number %s: %q, want some with actions", port, found[1], flows)
	}
	return up
}
