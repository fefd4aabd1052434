package node_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// speaker returns a boot sector that writes a line to the first serial port and switches
// the machine off when the power button is pressed. The ports are those of QEMU's q35
// board: the line's text is followed by what the ICH9's power management needs.
func speaker(line string) []byte {
	const (
		origin  = 0x7c00
		text    = 0x40
		status  = 0x600 // PM1a event block: status, and 2 bytes further what is enabled
		control = 0x604 // PM1a control
		button  = 1 << 8
		off     = 1 << 13 // SLP_EN, with a sleep type of 0, which is S5
	)
	word := func(v int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(v)) }
	var code []byte
	put := func(parts ...[]byte) {
		for _, p := range parts {
			code = append(code, p...)
		}
	}
	put([]byte{0xfa, 0x31, 0xc0, 0x8e, 0xd8, 0xbe}, word(origin+text)) // cli; ds = 0; si = text
	put([]byte{0xba}, word(0x3f8))                                     // dx = the serial port
	put([]byte{0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8})        // until a zero byte: out
	put([]byte{0xba}, word(status+2), []byte{0xb8}, word(button), []byte{0xef})
	put([]byte{0xba}, word(status))
	put([]byte{0xfb, 0xf4, 0xed, 0xf6, 0xc4, button >> 8, 0x74, 0xf8}) // sti; hlt until the button's bit is set
	put([]byte{0xba}, word(control), []byte{0xb8}, word(off), []byte{0xef, 0xeb, 0xfe})
	sector := make([]byte, 512)
	copy(sector, code)
	copy(sector[text:], line+"\r\n")
	sector[510], sector[511] = 0x55, 0xaa
	return sector
}

// bootableDisc returns an ISO 9660 disc whose boot sector is the given one.
func bootableDisc(t *testing.T, sector []byte) []byte {
	t.Helper()
	dir := t.TempDir()
	disc := filepath.Join(dir, "disc.iso")
	if err := os.MkdirAll(filepath.Join(dir, "files"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "files", "boot.bin"), append(sector, make([]byte, 1536)...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("xorriso", "-as", "mkisofs", "-quiet", "-b", "boot.bin", "-no-emul-boot", "-boot-load-size", "4", "-o", disc, filepath.Join(dir, "files")).CombinedOutput()
	if err != nil {
		t.Fatalf("xorriso: %v\n%s", err, out)
	}
	content, err := os.ReadFile(disc)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// rescued: an instance boots from a rescue medium on an emulated machine, again when it is
// restarted, and from its disk once the rescue has ended.
func rescued(t *testing.T, w *world) {
	disk := make([]byte, mib)
	copy(disk, speaker("this is the disk"))
	for name, content := range map[string]struct {
		format string
		bytes  []byte
	}{"patient": {"raw", disk}, "live": {api.FormatISO, bootableDisc(t, speaker("this is the medium"))}} {
		if _, err := w.upload(t, name, api.ImageSpec{Format: content.format}, content.bytes); err != nil {
			t.Fatal(err)
		}
	}
	g := w.create(t, "patient", "tiny", "patient", nil)
	boots := func(from string) {
		t.Helper()
		patience.Until(t, 2*time.Minute, "it boots from the "+from, func() bool {
			log := w.mustCLI(w.token, "instance", "log", "patient", "--project", "one")
			return strings.HasSuffix(strings.TrimSpace(log), "this is the "+from)
		})
	}
	g.phase(t, api.InstanceRunning, 2*time.Minute)
	boots("disk")
	w.mustCLI(w.token, "instance", "rescue", "patient", "--medium", "live", "--project", "one", "--wait")
	boots("medium")
	w.mustCLI(w.token, "instance", "stop", "patient", "--project", "one", "--wait")
	w.mustCLI(w.token, "instance", "start", "patient", "--project", "one", "--wait")
	boots("medium")
	w.mustCLI(w.token, "instance", "unrescue", "patient", "--project", "one", "--wait")
	boots("disk")
	g.remove(t)
	for _, name := range []string{"patient", "live"} {
		// The root volume is deleted after its instance, and needs its image until then.
		patience.Until(t, 2*time.Minute, "image "+name+" can be deleted", func() bool {
			_, err := client.Of[api.Image](w.operator).Delete(w.ctx, name)
			if err != nil && api.CodeOf(err) != api.CodeInUse {
				t.Fatal(err)
			}
			return err == nil
		})
	}
}
