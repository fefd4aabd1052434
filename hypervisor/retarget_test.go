package hypervisor

import (
	"errors"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/api"
)

// moved returns a machine as on its source and as on its target.
func moved() (src, dst Domain) {
	src = minimal()
	src.Disks = []Disk{{Path: "/a/root.raw", Format: "raw", Serial: "root"}}
	src.CDROMs = []CDROM{{Path: "/a/seed.iso", Serial: "seed"}}
	src.Drives = []Drive{{Medium: "/a/install.iso"}, {Medium: "/a/ejected.iso"}}
	src.NICs = []NIC{{MAC: "52:54:00:12:34:56", Tap: "tap-a"}}
	src.VNCSocket, src.AgentSocket = "/a/vnc", "/a/agent"
	src.SerialSocket, src.SerialLog = "/a/serial", "/a/log"
	dst = src
	dst.Node = "node-2"
	dst.Disks = []Disk{{Path: "/b/root.raw", Format: "raw", Serial: "root"}}
	dst.CDROMs = []CDROM{{Path: "/b/seed.iso", Serial: "seed"}}
	dst.Drives = []Drive{{Medium: "/b/install.iso"}, {}}
	dst.NICs = []NIC{{MAC: "52:54:00:12:34:56", Tap: "tap-b"}}
	dst.VNCSocket, dst.AgentSocket = "/b/vnc", "/b/agent"
	dst.SerialSocket, dst.SerialLog = "/b/serial", "/b/log"
	return src, dst
}

// TestRetarget checks that no value of the source's host remains, and that the
// machine is the same.
func TestRetarget(t *testing.T) {
	src, dst := moved()
	running, err := src.XML()
	if err != nil {
		t.Fatal(err)
	}
	running = strings.Replace(running, `machine="q35"`, `machine="pc-q35-10.0"`, 1) // as libvirt writes it
	got, err := Retarget(running, dst)
	if err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"/a/", "tap-a", "node-1"} {
		if strings.Contains(got, gone) {
			t.Errorf("the target's XML contains %q of the source:\n%s", gone, got)
		}
	}
	for _, want := range []string{"/b/root.raw", "/b/seed.iso", "/b/install.iso", "/b/vnc", "/b/agent", "/b/serial", "/b/log", "tap-b", "node-2", `incoming="yes"`, "pc-q35-10.0"} {
		if !strings.Contains(got, want) {
			t.Errorf("the target's XML lacks %q:\n%s", want, got)
		}
	}
	if o, ok, err := ParseOwned(got); err != nil || !ok || !o.Incoming || o.Node != "node-2" {
		t.Errorf("ParseOwned = %+v, %v, %v, want incoming and node-2", o, ok, err)
	}
}

// TestRetargetKeepsDrives checks that a machine keeps the drives that it was started
// with: it has others with its next start.
func TestRetargetKeepsDrives(t *testing.T) {
	for name, drives := range map[string][2]int{"fewer": {2, 0}, "more": {0, 2}} {
		src, dst := moved()
		src.Drives, dst.Drives = src.Drives[:drives[0]], dst.Drives[:drives[1]]
		running, err := src.XML()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Retarget(running, dst)
		if err != nil {
			t.Fatalf("%s drives on the target: %v", name, err)
		}
		has, err := ParseAttached(got)
		if n := len(has.Drives()); err != nil || n != drives[0] || strings.Contains(got, "/a/") {
			t.Errorf("%s drives on the target: %d, %v, want the %d of the source, without its files:\n%s", name, n, err, drives[0], got)
		}
	}
}

func TestRetargetRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		code   api.Code
		change func(src, dst *Domain)
	}{
		"a vGPU":        {api.CodeState, func(src, _ *Domain) { src.VGPUSocket = "/run/v" }},
		"a future vGPU": {api.CodeState, func(_, dst *Domain) { dst.VGPUSocket = "/run/v" }},
		"another":       {api.CodeInvalid, func(_, dst *Domain) { dst.ID = "ins-000000000001" }},
		"more disks":    {api.CodeInvalid, func(_, dst *Domain) { dst.Disks = append(dst.Disks, Disk{Path: "/b/2", Format: "raw", Serial: "2"}) }},
		"fewer discs":   {api.CodeInvalid, func(_, dst *Domain) { dst.CDROMs = nil }},
		"another disk":  {api.CodeInvalid, func(_, dst *Domain) { dst.Disks[0].Serial = "other" }},
		"another card":  {api.CodeInvalid, func(_, dst *Domain) { dst.NICs[0].MAC = "52:54:00:12:34:57" }},
		"more queues":   {api.CodeInvalid, func(_, dst *Domain) { dst.NICs[0].Queues = 2 }},
		"no screen":     {api.CodeInvalid, func(_, dst *Domain) { dst.VNCSocket = "" }},
	} {
		src, dst := moved()
		c.change(&src, &dst)
		running, err := src.XML()
		if err != nil {
			t.Fatal(err)
		}
		_, err = Retarget(running, dst)
		var e *api.Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("Retarget of %s = %v, want code %s", name, err, c.code)
		}
	}
}

// TestNoIOThread checks that a machine that was started without I/O threads
// migrates without them, and that disks are attached to it without them.
func TestNoIOThread(t *testing.T) {
	src, dst := moved()
	with, err := src.XML()
	if err != nil {
		t.Fatal(err)
	}
	without := beforeIOThreads(t, with)
	got, err := Retarget(without, dst)
	if err != nil || strings.Contains(got, "iothread") {
		t.Errorf("Retarget of a domain without I/O threads: %v, want no iothread in\n%s", err, got)
	}
	if got, err = Retarget(with, dst); err != nil || !strings.Contains(got, `iothread="1"`) || !strings.Contains(got, "<iothreads>1</iothreads>") {
		t.Errorf("Retarget of a domain with an I/O thread: %v, want an iothread in\n%s", err, got)
	}
	have := map[string]*Attached{"with": attachedOf(t, with), "without": attachedOf(t, without)}
	for _, c := range []struct {
		running, defined string
		want             bool
	}{{"with", "with", true}, {"without", "with", false}, {"with", "without", false}, {"", "with", true}} {
		text, err := RoomOf(have[c.running], have[c.defined]).Disk(src.ID, *have["with"], Disk{Path: "/a/2", Format: "raw", Serial: "2"})
		if err != nil || strings.Contains(text, "iothread") != c.want {
			t.Errorf("XML to attach a disk, running %q, defined %q: %v, want an I/O thread: %v in\n%s", c.running, c.defined, err, c.want, text)
		}
	}
}

// beforeIOThreads returns the XML without I/O threads.
func beforeIOThreads(t *testing.T, text string) string {
	t.Helper()
	for _, part := range []string{"  <iothreads>1</iothreads>\n", ` iothread="1"`} {
		if !strings.Contains(text, part) {
			t.Fatalf("the domain XML has no %q:\n%s", part, text)
		}
		text = strings.ReplaceAll(text, part, "")
	}
	return text
}

func attachedOf(t *testing.T, text string) *Attached {
	t.Helper()
	a, err := ParseAttached(text)
	if err != nil {
		t.Fatal(err)
	}
	return &a
}

func TestParseMark(t *testing.T) {
	_, element := Metadata("ins-1", "node-1")
	if o, ok := ParseMark(element); !ok || o.ID != "ins-1" || o.Node != "node-1" || o.Incoming {
		t.Errorf("ParseMark of Metadata = %+v, %v, want ins-1 on node-1, not incoming", o, ok)
	}
	if o, ok := ParseMark(`<instance id="ins-1" node="node-1" incoming="yes"/>`); !ok || !o.Incoming {
		t.Errorf("ParseMark with incoming=yes = %+v, %v, want incoming", o, ok)
	}
	for _, text := range []string{"", "<instance/>", `<other id="ins-1" node="node-1"/>`, `<instance id="../1" node="n"/>`} {
		if _, ok := ParseMark(text); ok {
			t.Errorf("ParseMark(%q) succeeded, want failure", text)
		}
	}
}

func FuzzRetarget(f *testing.F) {
	src, dst := moved()
	text, err := src.XML()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Retarget(text, dst)
		if err != nil {
			return
		}
		if o, ok, err := ParseOwned(got); err == nil && ok && (o.ID != dst.ID || o.Node != dst.Node || !o.Incoming) {
			t.Errorf("ParseOwned = %+v, want instance %s on %s, incoming", o, dst.ID, dst.Node)
		}
	})
}
