package hypervisor

import (
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// minimal returns the smallest valid domain.
func minimal() Domain {
	return Domain{
		ID: "ins-4f9c2a7be01d", Node: "node-1", Name: "demo", VCPUs: 1, MemoryBytes: 64 << 20, Accelerator: TCG,
		SerialSocket: "/run/basalt/i/serial.sock", SerialLog: "/var/lib/basalt/i/console.log",
	}
}

var goldens = map[string]func(*Domain){
	"minimal": func(*Domain) {},
	"demo": func(d *Domain) {
		d.VCPUs, d.MemoryBytes = 2, 1<<30
		d.Disks = []Disk{{Path: "/var/lib/basalt/volumes/vol-1.qcow2", Format: "qcow2", Serial: "vol-1"}}
		d.CDROMs = []CDROM{{Path: "/var/lib/basalt/i/seed.iso"}, {Path: "/usr/lib/basalt/tools.iso", Serial: "tools"}}
		d.VGPUSocket = "/run/basalt/i/vgpu.sock"
		d.AgentSocket = "/run/basalt/i/agent.sock"
		d.VNCSocket = "/run/basalt/i/vnc.sock"
	},
	"kvm": func(d *Domain) {
		d.Machine = "pc-q35-10.0"
		d.Accelerator, d.VCPUs, d.MemoryBytes = KVM, 64, 512<<30
		d.Disks = []Disk{
			{Path: "/var/lib/basalt/volumes/vol-1.raw", Format: "raw", Serial: "vol-1", Cache: "none", AIO: "io_uring"},
			{Path: "/var/lib/basalt/volumes/vol-2.raw", Format: "raw", Serial: "vol-2", ReadOnly: true},
		}
		d.NICs = []NIC{{MAC: "52:54:00:12:34:56", Tap: "tap0", MTU: 1442}}
	},
	"baseline": func(d *Domain) {
		d.Accelerator, d.VCPUs, d.Machine = KVM, 8, "pc-q35-10.0"
		d.CPU = &CPU{Vendor: "AMD", Model: "EPYC-Milan", Features: []string{"aes", "avx2"}, Disabled: []string{"pcid"}, AddressBits: 48}
	},
	"hugepages": func(d *Domain) {
		d.Accelerator, d.MemoryBytes, d.HugePages = KVM, 4<<30, 1<<30
	},
	"shared": func(d *Domain) { d.SharedCPUs = []int{0, 1, 2, 8} },
	"dedicated": func(d *Domain) {
		d.Accelerator, d.VCPUs, d.MemoryBytes = KVM, 3, 4<<30
		d.Cells, d.SharedCPUs = []Cell{{Host: 1, CPUs: []int{4, 5, 12}, MemoryBytes: 4 << 30}}, []int{0, 1, 2, 3, 8}
	},
	"cells": func(d *Domain) {
		d.Accelerator, d.VCPUs, d.MemoryBytes, d.HugePages = KVM, 5, 4<<30, 1<<30
		d.Cells = []Cell{{Host: 0, CPUs: []int{2, 3, 10}, MemoryBytes: 3 << 30}, {Host: 1, CPUs: []int{4, 5}, MemoryBytes: 1 << 30}}
		d.SharedCPUs, d.AnyMemory = []int{0, 1, 8}, true
	},
	"windows": func(d *Domain) {
		d.Accelerator, d.VCPUs, d.MemoryBytes, d.Windows = KVM, 4, 8<<30, true
		d.Firmware, d.TPM = &Firmware{SecureBoot: true, NVRAM: "/var/lib/basalt/i/nvram.fd"}, true
		d.Disks = []Disk{{Path: "/var/lib/basalt/volumes/vol-1.qcow2", Format: "qcow2", Serial: "vol-1"}}
	},
	"drives": func(d *Domain) {
		d.Disks = []Disk{{Path: "/var/lib/basalt/volumes/vol-1.qcow2", Format: "qcow2", Serial: "root"}, {Path: "/var/lib/basalt/volumes/vol-2.qcow2", Format: "qcow2", Serial: "vol-2"}}
		d.CDROMs = []CDROM{{Path: "/var/lib/basalt/i/seed.iso"}}
		d.Drives = []Drive{{Medium: "/var/lib/basalt/images/img-1/disk"}, {}}
	},
	"bootmedium": func(d *Domain) {
		d.Disks = []Disk{{Path: "/var/lib/basalt/volumes/vol-1.qcow2", Format: "qcow2", Serial: "root"}}
		d.Drives, d.BootMedium = []Drive{{Medium: "/var/lib/basalt/images/img-1/disk"}, {Medium: "/m/<&>\".iso"}}, true
	},
	"windowstcg": func(d *Domain) { d.Windows = true },
	"uefi":       func(d *Domain) { d.Firmware = &Firmware{NVRAM: "/var/lib/basalt/i/nvram.fd"} },
	"secureboot": func(d *Domain) {
		d.Firmware, d.TPM = &Firmware{SecureBoot: true, NVRAM: "/var/lib/basalt/i/nvram.fd"}, true
	},
	"kernel": func(d *Domain) {
		d.Boot = &DirectBoot{Kernel: "/boot/vmlinuz", Initrd: "/boot/initrd.img", Cmdline: "console=ttyS0 quiet <&'\">"}
	},
	"storage": func(d *Domain) {
		key := SecretUUID("volume/vol-2")
		d.Disks = []Disk{
			{RBD: &RBD{Pool: "basalt", Image: "vol-1", Monitors: []string{"10.0.0.1:6789", "[fd00::1]:3300"}, User: "basalt", SecretUUID: SecretUUID("ceph/basalt")},
				Format: "raw", Serial: "vol-1", QoS: QoS{ReadIOPS: 500, WriteBytesPerSecond: 50 << 20}},
			{RBD: &RBD{Pool: "basalt", Image: "vol-2", Monitors: []string{"mon.example:6789"}}, Format: "raw", Serial: "vol-2", Secret: key},
			{Path: "/var/lib/basalt/volumes/vol-3/2.qcow2", Format: "qcow2", Serial: "vol-3", Secret: key, Backing: []Layer{
				{Path: "/var/lib/basalt/volumes/vol-3/1.qcow2", Format: "qcow2", Secret: key},
				{Path: "/var/lib/basalt/images/img-1", Format: "raw"},
			}},
		}
	},
	"network": func(d *Domain) {
		d.NICs = []NIC{{MAC: "52:54:00:12:34:56", Tap: "bt0123456789ab", NoOffload: true, MTU: 1442}, {MAC: "52:54:00:12:34:57", Tap: "bt1"},
			{MAC: "52:54:00:12:34:58", Tap: "bt2", Queues: 4}, {MAC: "52:54:00:12:34:59", Tap: "bt3", Queues: 2, NoOffload: true}}
	},
	// Every character with a meaning in XML or in QEMU's options.
	"hostile": func(d *Domain) {
		d.Name = `</title><devices><disk type='file'/></devices> & "x" 'y' ]]>`
		d.Disks = []Disk{{Path: `/v/a,b'"><source file='/etc/shadow'/>&amp;`, Format: "raw"}}
		d.VGPUSocket = `/r/a,server=on,'"<&>.sock`
		d.SerialLog = `/v/%s$(id)"'<log>`
	},
}

func TestXMLGolden(t *testing.T) {
	for name, change := range goldens {
		t.Run(name, func(t *testing.T) {
			d := minimal()
			change(&d)
			got, err := d.XML()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".xml")
			if *update {
				if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
				t.Errorf("domain XML mismatch; if intended, rewrite it with go test ./hypervisor -update (-want +got):\n%s", diff)
			}
			owned, ok, err := ParseOwned(got)
			if err != nil || !ok {
				t.Fatalf("ParseOwned: owned %v, %v, want a domain of Basalt", ok, err)
			}
			var serials []string
			for _, k := range d.Disks {
				serials = append(serials, k.Serial)
			}
			if diff := cmp.Diff(Owned{ID: d.ID, Node: d.Node, SerialSocket: d.SerialSocket, SerialLog: d.SerialLog, VNCSocket: d.VNCSocket, DiskSerials: serials}, owned); diff != "" {
				t.Errorf("ParseOwned mismatch (-want +got):\n%s", diff)
			}
		})
	}
}

// TestXMLMatchesLibvirtSchema checks the golden files against libvirt's
// schema, without a libvirtd.
func TestXMLMatchesLibvirtSchema(t *testing.T) {
	schema := "/usr/share/libvirt/schemas/domain.rng"
	if _, err := os.Stat(schema); err != nil {
		t.Skipf("libvirt's schema is not installed: %v", err)
	}
	lint, err := exec.LookPath("xmllint")
	if err != nil {
		t.Skip("xmllint is not installed (libxml2-utils)")
	}
	files, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(files) < len(goldens) {
		t.Fatalf("golden files = %v, %v, want at least %d", files, err, len(goldens))
	}
	if out, err := exec.Command(lint, append([]string{"--noout", "--relaxng", schema}, files...)...).CombinedOutput(); err != nil {
		t.Errorf("xmllint: %v\n%s", err, out)
	}
}

// TestXMLEscapesStrings checks that a hostile string stays
// one value: the document has the same elements in the same order as one with
// a harmless string.
func TestXMLEscapesStrings(t *testing.T) {
	d := minimal()
	goldens["hostile"](&d)
	hostile, err := d.XML()
	if err != nil {
		t.Fatal(err)
	}
	d.Name, d.Disks[0].Path, d.VGPUSocket, d.SerialLog = "a", "/b", "/c", "/d"
	harmless, err := d.XML()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shape(t, harmless), shape(t, hostile)); diff != "" {
		t.Errorf("elements and attributes mismatch (-harmless +hostile):\n%s", diff)
	}
	if !strings.Contains(hostile, "path=/r/a,,server=on,,") {
		t.Error("the comma in the vGPU's path is not doubled, want no way to end QEMU's option")
	}
}

// shape returns the names of all elements and attributes in order.
func shape(t *testing.T, text string) []string {
	t.Helper()
	var names []string
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		tok, err := dec.Token()
		if err != nil {
			if len(names) == 0 {
				t.Fatal(err)
			}
			return names
		}
		if s, ok := tok.(xml.StartElement); ok {
			names = append(names, s.Name.Local)
			for _, a := range s.Attr {
				names = append(names, s.Name.Local+"@"+a.Name.Local)
			}
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*Domain)
	}{
		{"id", func(d *Domain) { d.ID = "" }},
		{"id", func(d *Domain) { d.ID = "../x" }},
		{"id", func(d *Domain) { d.ID = "a\n" }},
		{"node", func(d *Domain) { d.Node = "a b" }},
		{"name", func(d *Domain) { d.Name = "a\x00b" }},
		{"name", func(d *Domain) { d.Name = "a\uFFFEb" }},
		{"name", func(d *Domain) { d.Name = "\xff" }},
		{"name", func(d *Domain) { d.Name = strings.Repeat("x", 254) }},
		{"vcpus", func(d *Domain) { d.VCPUs = 0 }},
		{"vcpus", func(d *Domain) { d.VCPUs = 256 }},
		{"memoryBytes", func(d *Domain) { d.MemoryBytes = 1 << 20 }},
		{"memoryBytes", func(d *Domain) { d.MemoryBytes++ }},
		{"memoryBytes", func(d *Domain) { d.MemoryBytes = -1 << 30 }},
		{"hugePages", func(d *Domain) { d.HugePages = 4096 }},
		{"hugePages", func(d *Domain) { d.HugePages = 1 << 30 }},
		{"hugePages", func(d *Domain) { d.HugePages, d.VGPUSocket = 2<<20, "/run/vgpu.sock" }},
		{"shared", func(d *Domain) { d.SharedCPUs = []int{-1} }},
		{"shared", func(d *Domain) {
			d.Cells, d.SharedCPUs = []Cell{{CPUs: []int{1}, MemoryBytes: d.MemoryBytes}}, []int{0, 1}
		}},
		{"sharedCPUs", func(d *Domain) { d.Cells = []Cell{{CPUs: []int{1}, MemoryBytes: d.MemoryBytes}} }},
		{"cells", func(d *Domain) { d.Cells, d.SharedCPUs = []Cell{{MemoryBytes: d.MemoryBytes}}, []int{0} }},
		{"cells", func(d *Domain) { d.Cells, d.SharedCPUs = []Cell{{CPUs: []int{1}, MemoryBytes: 1 << 20}}, []int{0} }},
		{"cells", func(d *Domain) {
			d.Cells, d.SharedCPUs = []Cell{{CPUs: []int{1, 2}, MemoryBytes: d.MemoryBytes}}, []int{0}
		}},
		{"vcpus", func(d *Domain) {
			d.VCPUs, d.Cells, d.SharedCPUs = 2, []Cell{{CPUs: []int{1, 1}, MemoryBytes: d.MemoryBytes}}, []int{0}
		}},
		{"accelerator", func(d *Domain) { d.Accelerator = "" }},
		{"tpm", func(d *Domain) { d.TPM = true }},
		{"firmware.nvram", func(d *Domain) { d.Firmware = &Firmware{} }},
		{"firmware.nvram", func(d *Domain) { d.Firmware = &Firmware{NVRAM: "nvram.fd"} }},
		{"machine", func(d *Domain) { d.Machine = "q35" }},
		{"drives", func(d *Domain) { d.Drives = make([]Drive, 3) }},
		{"drives.medium", func(d *Domain) { d.Drives = []Drive{{Medium: "a.iso"}} }},
		{"drives.medium", func(d *Domain) { d.Drives = []Drive{{}, {Medium: "/a/../b.iso"}} }},
		{"bootMedium", func(d *Domain) { d.BootMedium = true }},
		{"cpu.model", func(d *Domain) { d.CPU = &CPU{Model: "a,+x"} }},
		{"cpu.features", func(d *Domain) { d.CPU = &CPU{Model: "EPYC", Features: []string{"a b"}} }},
		{"cpu.features", func(d *Domain) { d.CPU = &CPU{Model: "EPYC", Disabled: []string{""}} }},
		{"cpu.addressBits", func(d *Domain) { d.CPU = &CPU{Model: "EPYC", AddressBits: 8} }},
		{"machine", func(d *Domain) { d.Machine = "pc-i440fx-10.0" }},
		{"machine", func(d *Domain) { d.Machine = "pc-q35-10.0,accel=kvm" }},
		{"serialSocket", func(d *Domain) { d.SerialSocket = "" }},
		{"serialSocket", func(d *Domain) { d.SerialSocket = "/" + strings.Repeat("x", 107) }},
		{"serialLog", func(d *Domain) { d.SerialLog = "/a/../b" }},
		{"vgpuSocket", func(d *Domain) { d.VGPUSocket = "relative" }},
		{"vgpuSocket", func(d *Domain) { d.VGPUSocket = "/a\n-daemonize" }},
		{"disks.path", func(d *Domain) { d.Disks = []Disk{{Format: "raw"}} }},
		{"disks.format", func(d *Domain) { d.Disks = []Disk{{Path: "/a"}} }},
		{"disks.serial", func(d *Domain) { d.Disks = []Disk{{Path: "/a", Format: "raw", Serial: "a,b"}} }},
		{"nics.queues", func(d *Domain) { d.NICs = []NIC{{MAC: "52:54:00:12:34:56", Tap: "t", Queues: MaxNICQueues + 1}} }},
		{"disks.cache", func(d *Domain) { d.Disks = []Disk{{Path: "/a", Format: "raw", Cache: "x"}} }},
		{"disks.aio", func(d *Domain) { d.Disks = []Disk{{Path: "/a", Format: "raw", Cache: "none", AIO: "x"}} }},
		{"disks.aio", func(d *Domain) { d.Disks = []Disk{{Path: "/a", Format: "raw", AIO: "native"}} }},
		{"disks.aio", func(d *Domain) {
			d.Disks = []Disk{{RBD: &RBD{Pool: "p", Image: "i", Monitors: []string{"10.0.0.1:6789"}}, Format: "raw", Cache: "none", AIO: "io_uring"}}
		}},
		{"disks", func(d *Domain) { d.Disks = make([]Disk, 17) }},
		{"disks.path", func(d *Domain) { d.Disks = []Disk{{Path: "/a", RBD: rbd(), Format: "raw"}} }},
		{"disks.format", func(d *Domain) { d.Disks = []Disk{{RBD: rbd(), Format: "qcow2"}} }},
		{"disks.serial", func(d *Domain) {
			d.Disks = []Disk{{Path: "/a", Format: "raw", Serial: "a"}, {Path: "/b", Format: "raw", Serial: "a"}}
		}},
		{"disks.rbd.pool", func(d *Domain) { d.Disks = []Disk{{RBD: rbd(func(r *RBD) { r.Pool = "a/b" }), Format: "raw"}} }},
		{"disks.rbd.image", func(d *Domain) { d.Disks = []Disk{{RBD: rbd(func(r *RBD) { r.Image = "a:conf=/x" }), Format: "raw"}} }},
		{"disks.rbd.monitors", func(d *Domain) { d.Disks = []Disk{{RBD: rbd(func(r *RBD) { r.Monitors = nil }), Format: "raw"}} }},
		{"disks.rbd.monitors", func(d *Domain) {
			d.Disks = []Disk{{RBD: rbd(func(r *RBD) { r.Monitors = []string{"10.0.0.1"} }), Format: "raw"}}
		}},
		{"disks.rbd.monitors", func(d *Domain) {
			d.Disks = []Disk{{RBD: rbd(func(r *RBD) { r.Monitors = []string{"a;b:1"} }), Format: "raw"}}
		}},
		{"disks.rbd.secretUUID", func(d *Domain) { d.Disks = []Disk{{RBD: rbd(func(r *RBD) { r.User = "u" }), Format: "raw"}} }},
		{"disks.secret", func(d *Domain) { d.Disks = []Disk{{Path: "/a", Format: "raw", Secret: "x"}} }},
		{"disks.backing.path", func(d *Domain) {
			d.Disks = []Disk{{Path: "/a", Format: "raw", Backing: []Layer{{Path: "b", Format: "raw"}}}}
		}},
		{"disks.qos", func(d *Domain) { d.Disks = []Disk{{Path: "/a", Format: "raw", QoS: QoS{WriteIOPS: -1}}} }},
		{"nics.mac", func(d *Domain) {
			d.NICs = []NIC{{MAC: "52:54:00:00:00:01", Tap: "a"}, {MAC: "52:54:00:00:00:01", Tap: "b"}}
		}},
		{"cdroms.path", func(d *Domain) { d.CDROMs = []CDROM{{}} }},
		{"nics.mac", func(d *Domain) { d.NICs = []NIC{{MAC: "01:00:5e:00:00:01", Tap: "t"}} }},
		{"nics.tap", func(d *Domain) { d.NICs = []NIC{{MAC: "52:54:00:00:00:01", Tap: "a/b"}} }},
		{"nics.mtu", func(d *Domain) { d.NICs = []NIC{{MAC: "52:54:00:00:00:01", Tap: "t", MTU: 1}} }},
		{"boot.kernel", func(d *Domain) { d.Boot = &DirectBoot{} }},
		{"boot.cmdline", func(d *Domain) { d.Boot = &DirectBoot{Kernel: "/k", Cmdline: "a\nb"} }},
	} {
		d := minimal()
		c.change(&d)
		_, err := d.XML()
		var e *api.Error
		if !errors.As(err, &e) || e.Code != api.CodeInvalid || e.Field != c.field {
			t.Errorf("Validate = %v, want invalid at %s", err, c.field)
		}
	}
}

func rbd(change ...func(*RBD)) *RBD {
	r := &RBD{Pool: "p", Image: "i", Monitors: []string{"10.0.0.1:6789"}}
	for _, f := range change {
		f(r)
	}
	return r
}

func TestUUIDIsStable(t *testing.T) {
	if got, want := UUID("ins-4f9c2a7be01d"), "abb996fb-6487-51df-839f-d54b371fd9df"; got != want {
		t.Errorf("UUID of an existing domain = %s, want %s: it must never change", got, want)
	}
	if UUID("ins-4f9c2a7be01d") == UUID("ins-4f9c2a7be01e") {
		t.Error("two instances have the same UUID, want different ones")
	}
}

func TestParseOwnedLeavesOthersAlone(t *testing.T) {
	for _, text := range []string{
		`<domain><name>basalt-ins-1</name></domain>`,
		`<domain><name>other</name><metadata><x:instance xmlns:x="urn:other" id="ins-1" node="n"/></metadata></domain>`,
		`<domain><name>other</name><metadata><x:instance xmlns:x="urn:basalt-gpu:domain:1" id="ins-1" node="n"/></metadata></domain>`,
		`<domain><name>basalt-ins-1</name><metadata><x:instance xmlns:x="urn:basalt-gpu:domain:1" id="ins-1"/></metadata></domain>`,
	} {
		if o, ok, err := ParseOwned(text); ok || err != nil {
			t.Errorf("ParseOwned(%s) = %v, %v, %v, want not owned and no error", text, o, ok, err)
		}
	}
	if _, _, err := ParseOwned("<domain"); err == nil {
		t.Error("ParseOwned of invalid XML = nil, want an error")
	}
}
