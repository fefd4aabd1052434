package machine

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func fixture(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/lsblk.json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseDisks(t *testing.T) {
	disks, err := ParseDisks(fixture(t), map[string][]string{"/dev/sda": {"wwn-0x5", "ata-SAMSUNG"}}, "/target")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range disks {
		fmt.Fprintf(&b, "%s %s %q serial=%q confirm=%q ssd=%v removable=%v node=%v byid=%v\n", d.Path, Bytes(d.SizeBytes), d.Model, d.Serial, d.Confirm(), d.SSD, d.Removable, d.Node, d.ByID)
		for _, c := range d.Contents {
			fmt.Fprintf(&b, "    %s\n", c)
		}
		if d.Refusal != nil {
			fmt.Fprintf(&b, "  no: %s\n      %s\n", d.Refusal.Reason, d.Refusal.Hint)
		}
	}
	if *update {
		if err := os.WriteFile("testdata/disks.golden", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/disks.golden")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("disks: mismatch (-want +got):\n%s", d)
	}
}

// TestTargetIsBusyUnlessOurs checks that a disk mounted under the installer's own
// target counts as busy unless that is ignored.
func TestTargetIsBusyUnlessOurs(t *testing.T) {
	disks, err := ParseDisks(fixture(t), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range disks {
		if d.Path == "/dev/nvme0n1" && d.Refusal == nil {
			t.Error("a mounted disk can be chosen, want it refused")
		}
	}
}

func TestParseNICs(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s + "\n")} }
	sys := fstest.MapFS{
		"class/net/lo/type": file("772"), "class/net/lo/address": file("00:00:00:00:00:00"),
		"class/net/br0/type": file("1"), "class/net/br0/address": file("52:54:00:00:00:01"),
		"class/net/wlan0/type": file("1"), "class/net/wlan0/address": file("52:54:00:00:00:02"),
		"class/net/wlan0/device/x": file(""), "class/net/wlan0/phy80211/x": file(""),
		"class/net/eno1/type": file("1"), "class/net/eno1/address": file("52:54:00:00:00:03"), "class/net/eno1/device/x": file(""),
		"class/net/eno2/type": file("1"), "class/net/eno2/address": file("52:54:00:00:00:04"), "class/net/eno2/device/x": file(""),
		"class/net/eno2/carrier": file("1"), "class/net/eno2/speed": file("10000"),
		"class/net/eno2/device/driver": {Data: []byte("../../bus/pci/drivers/ixgbe"), Mode: fs.ModeSymlink},
	}
	got, err := ParseNICs(sys)
	if err != nil {
		t.Fatal(err)
	}
	want := []NIC{{"eno2", "52:54:00:00:00:04", "ixgbe", true, 10000}, {"eno1", "52:54:00:00:00:03", "", false, 0}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("network cards: mismatch (-want +got):\n%s", d)
	}
}

func TestReadThisMachine(t *testing.T) {
	if _, err := os.Stat("/usr/bin/lsblk"); err != nil {
		t.Skip("host: lsblk is not installed")
	}
	disks, err := ReadDisks(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range disks {
		if d.SizeBytes == 0 || !strings.HasPrefix(d.Path, "/dev/") {
			t.Errorf("disk = %+v, want a size and a path below /dev", d)
		}
	}
	if _, err := ReadNICs(); err != nil {
		t.Fatal(err)
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 16 << 30: "16 GiB", 480103981056: "447 GiB", 1920383410176: "1.7 TiB", 1 << 62: "4096 PiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
}

func FuzzParseDisks(f *testing.F) {
	f.Add(fixture(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		disks, err := ParseDisks(data, nil, "")
		for _, d := range disks {
			if err != nil || strings.ContainsAny(d.Model+d.Serial, "\x1b\n\r") || d.Partition(1) == "" {
				t.Fatalf("disk = %+v, %v; want printable strings", d, err)
			}
		}
	})
}
