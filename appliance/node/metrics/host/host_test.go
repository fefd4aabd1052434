package host

import (
	"os"
	"path/filepath"
	"testing"
)

const (
	stat = "cpu  100 1 50 9000 70 3 4 500 20 0\ncpu0 50 0 25 4500 35 1 2 250 10 0\ncpu1 50 1 25 4500 35 2 2 250 10 0\nintr 5\n"
	mem  = "MemTotal:        8000 kB\nMemFree:  100 kB\nMemAvailable:    2000 kB\n"
	disk = "   8       0 sda 10 0 200 5 20 0 400 6 0 0 0\n   8       1 sda1 10 0 200 5 20 0 400 6 0 0 0\n 252 0 dm-0 1 0 2 3 4 0 6 7 0 0 0\n"
	net  = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0
  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0
  tap1:5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0
`
	route = "Iface\tDestination\tGateway\ntap1\t0000A8C0\t0\neth0\t00000000\t0102A8C0\n"
)

// machine returns a directory tree with these files and devices.
func machine(t *testing.T, devices ...string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{"proc/stat": stat, "proc/meminfo": mem, "proc/diskstats": disk, "proc/net/dev": net, "proc/net/route": route} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range devices {
		if err := os.MkdirAll(filepath.Join(root, "sys", d, "device"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRead(t *testing.T) {
	want := Use{CPUs: 2, BusyTicks: 158, MemoryBytes: 8000 << 10, UsedBytes: 6000 << 10, ReadBytes: 200 * 512, WriteBytes: 400 * 512, ReceivedBytes: 1000, SentBytes: 2000}
	for name, devices := range map[string][]string{
		"a machine":             {"block/sda", "class/net/eth0"},
		"cards of the kernel's": {"block/sda"},
	} {
		if u, err := Read(machine(t, devices...)); err != nil || u != want {
			t.Errorf("Read of %s = %+v, error %v; want %+v", name, u, err, want)
		}
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("Read without /proc returned nil, want an error")
	}
}

func TestThisMachine(t *testing.T) {
	u, err := Read("/")
	if err != nil || u.CPUs < 1 || u.BusyTicks == 0 || u.UsedBytes == 0 || u.UsedBytes >= u.MemoryBytes {
		t.Errorf("use of this machine = %+v, error %v; want positive CPUs, busy ticks and used memory below the total", u, err)
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{stat, mem, disk, net, route, "", "cpu", "cpu 1 2 3 4 5 6 7 8\ncpu0\n", "MemTotal: 99999999999999999999 kB\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var u Use
		every := func(string) bool { return true }
		_ = u.stat(raw)
		if err := u.meminfo(raw); err == nil && u.UsedBytes > u.MemoryBytes {
			t.Errorf("meminfo(%q) = %+v, want used memory below the total", raw, u)
		}
		_, _, _ = u.diskstats(raw, every), u.netDev(raw, every), wayOut(raw)
	})
}
