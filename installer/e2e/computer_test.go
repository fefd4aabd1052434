// Package e2e installs the medium that "make iso" builds on computers emulated by QEMU,
// and checks the resulting node. It is independent of the installer's code: it reads
// the serial line and calls the API.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/failed"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
	"github.com/basalt-gpu/basalt/appliance/test/kit/turn"
)

const hint = "run make iso"

// limit is the limit of one boot or one installation: without KVM it takes minutes, on
// two processors that are also used by others.
const limit = 15 * time.Minute

// processor is the best that QEMU emulates, without features that are slow in emulation
// (hypervisor, slowEmulated).
const processor = "max,erms=off,fsrm=off,la57=off"

// memorySize is the memory of a computer, in bytes.
const memorySize = 2 << 30

// prepared waits for its turn among all tests that boot machines, and returns the path
// of the medium.
func prepared(t *testing.T) (iso string) {
	t.Helper()
	iso = medium(t)
	turn.QEMU(t)
	return iso
}

// medium returns the path of the medium that make iso builds.
func medium(t *testing.T) (iso string) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs the medium that make iso builds; skipped in short mode")
	}
	iso = filepath.Join(outputs(t), "basalt.iso")
	if _, err := os.Stat(iso); err != nil {
		t.Fatalf("%v: %s", err, hint)
	}
	return iso
}

// outputs returns the folder of all build outputs.
func outputs(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BASALT_BUILD")
	if dir == "" {
		dir = "../../build"
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// computer is an emulated computer whose disk survives power cuts, and can be moved to
// another kind of computer.
type computer struct {
	name    string // of the node that it becomes
	serial  string // of its disk
	uefi    bool   // else BIOS
	nvme    bool   // else virtio
	mirror  bool   // with a second disk, of serial BASALT0002
	without bool   // without the first one
	alone   bool   // without a network, and with a screen that the BIOS writes to
	memory  int    // bytes

	dir              string
	key, public      string // of root: path of the private key, and the public key
	host             string // where it is reached
	apiPort, sshPort uint16 // of the host, which is the node or forwards them to it
	gatewayPort      uint16 // likewise, to its SSH gateway
	otherPort        uint16 // likewise, to the constant's port
	cards            []card // empty: one, on which QEMU assigns 10.0.2.15 and forwards the ports
	starts           int    // so far
}

// newComputer returns a computer with an empty disk.
func newComputer(t *testing.T, name, serial string) *computer {
	t.Helper()
	c := &computer{name: name, serial: serial, memory: memorySize, host: "127.0.0.1", dir: t.TempDir()}
	c.apiPort, c.sshPort, c.gatewayPort, c.otherPort = port.Free(t), port.Free(t), port.Free(t), port.Free(t)
	c.key = filepath.Join(c.dir, "key")
	run(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", c.key)
	public, err := os.ReadFile(c.key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	c.public = strings.TrimSpace(string(public))
	// The raw format ensures that writes are kept even if QEMU is killed.
	run(t, "truncate", "-s", "24G", c.disk())
	run(t, "cp", ovmf(t, "VARS"), filepath.Join(c.dir, "vars.fd"))
	return c
}

func (c *computer) disk() string { return filepath.Join(c.dir, "disk.raw") }

func (c *computer) firmware() string {
	if c.uefi {
		return "UEFI"
	}
	return "BIOS"
}

// powerOn starts the computer with media: discs (.iso) or sticks.
func (c *computer) powerOn(t *testing.T, media ...string) *power {
	t.Helper()
	args := []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio",
		"-device", "VGA", "-accel", "tcg,thread=multi,tb-size=1024", "-cpu", processor, "-m", strconv.Itoa(c.memory >> 20),
		"-device", "virtio-rng-pci",
	}
	if c.alone {
		args = append(args, "-machine", "q35,graphics=off") // the BIOS also writes to the serial line
	} else if args = append(args, "-machine", "q35"); len(c.cards) > 0 {
		for _, n := range c.cards {
			args = append(args, n.args()...)
		}
	} else {
		args = append(args, "-netdev", fmt.Sprintf("user,id=net,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:7480,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:22,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:2222,hostfwd=tcp:127.0.0.1:%d-10.0.2.15:%d", c.apiPort, c.sshPort, c.gatewayPort, c.otherPort, otherPort),
			"-device", "virtio-net-pci,netdev=net,mac=52:54:00:ba:5a:17,romfile=")
	}
	device := "virtio-blk-pci"
	if c.nvme {
		device = "nvme"
	}
	// Copies of what nobody has written must not take space on this machine.
	const drive = "if=none,format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap,"
	if !c.without {
		args = append(args, "-drive", drive+"id=disk,file="+c.disk(), "-device", device+",drive=disk,bootindex=2,serial="+c.serial)
	}
	if c.mirror {
		args = append(args, "-drive", drive+"id=disk2,file="+c.secondDisk(), "-device", device+",drive=disk2,bootindex=3,serial=BASALT0002")
	}
	if c.uefi {
		args = append(args, "-drive", "if=pflash,format=raw,readonly=on,file="+ovmf(t, "CODE"),
			"-drive", "if=pflash,format=raw,file="+filepath.Join(c.dir, "vars.fd"))
	}
	for i, m := range media {
		id := fmt.Sprintf("medium%d", i)
		if strings.HasSuffix(m, ".iso") {
			args = append(args, "-drive", "if=none,media=cdrom,readonly=on,format=raw,id="+id+",file="+m,
				"-device", fmt.Sprintf("ide-cd,bus=ide.%d,drive=%s,bootindex=%d", i, id, 1+8*i))
		} else {
			args = append(args, "-drive", "if=none,readonly=on,format=raw,id="+id+",file="+m,
				"-device", "qemu-xhci", "-device", "usb-storage,drive="+id)
		}
	}
	c.starts++
	name := fmt.Sprintf("%d-%s", c.starts, c.firmware())
	socket := filepath.Join(c.dir, name+".qmp")
	args = append(args, "-qmp", "unix:"+socket+",server=on,wait=off")
	p := &power{t: t, cmd: exec.Command("qemu-system-x86_64", args...), more: make(chan struct{}), done: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // QEMU ends with the test process
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.keys = stdin
	// The serial line is also written to a file, for watching.
	log, err := os.Create(filepath.Join(c.dir, name+"-serial.log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	both := io.MultiWriter(p, &stamped{to: log, began: time.Now()})
	p.cmd.Stdout, p.cmd.Stderr = both, both
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.cut()
		if t.Failed() {
			t.Logf("the serial line ends with:\n%s", p.tail(1500))
		}
	})
	// This needs a computer that is still on.
	failed.Keep(t, func(f failed.Folder) {
		f.Files(log.Name())
		if p.isOff() {
			return
		}
		f.Output(name+"-node.txt", c.sshArgs("journalctl -b --no-pager -n 20000; systemctl list-jobs; systemctl --failed; systemd-analyze blame; ps axf; ip address; "+
			"ovs-vsctl --db=unix:/run/basalt/ovs/db.sock --timeout=5 show")...)
		explain(t, f, socket, name)
	})
	return p
}

// stamped prefixes lines with the seconds since power-on.
type stamped struct {
	to    io.Writer
	began time.Time
	inner bool // within a line
}

func (s *stamped) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		if !s.inner {
			fmt.Fprintf(s.to, "%7.2f ", time.Since(s.began).Seconds())
		}
		if _, err := s.to.Write(line); err != nil {
			return 0, err
		}
		s.inner = line[len(line)-1] != '\n'
	}
	return len(b), nil
}

// power is a computer between power-on and power-off.
type power struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys io.Writer
	done chan struct{} // closed when it is off
	err  error         // of QEMU, valid once done is closed

	mu   sync.Mutex
	line []byte        // everything from the serial line
	more chan struct{} // closed and replaced when there is more
}

// Write appends output of the serial line.
func (p *power) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = append(p.line, b...)
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}

func (p *power) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.line[max(0, len(p.line)-n):])
}

// spent returns the CPU time that QEMU has used so far, or in total: the cost of a boot
// when others use the machine, too.
func (p *power) spent() time.Duration {
	if p.isOff() {
		return (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Round(time.Second)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	// The 14th and 15th field of proc_pid_stat(5); the second, a name, may contain
	// blanks.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0
		}
		ticks += n
	}
	return (time.Duration(ticks) * time.Second / 100).Round(time.Second) // USER_HZ
}

// isOff reports whether the computer is off.
func (p *power) isOff() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// panicked is printed by a kernel that has panicked.
const panicked = "Kernel panic - not syncing"

// see waits until the serial line contains one of the texts and returns it. It fails at
// once after a kernel panic.
func (p *power) see(texts ...string) string {
	p.t.Helper()
	ctx, cancel := patience.Context(context.Background(), limit)
	defer cancel()
	for {
		off := p.isOff() // all of its output was received by then
		p.mu.Lock()
		for _, s := range texts {
			if bytes.Contains(p.line, []byte(s)) {
				p.mu.Unlock()
				return s
			}
		}
		more, dead := p.more, bytes.Contains(p.line, []byte(panicked))
		p.mu.Unlock()
		if dead {
			p.t.Fatalf("the kernel panicked before the serial line said one of %q", texts)
		}
		if off {
			p.t.Fatalf("the computer went off (%v) before the serial line said one of %q", p.err, texts)
		}
		select {
		case <-more:
		case <-p.done:
		case <-ctx.Done():
			p.t.Fatalf("the serial line did not say one of %q within %v", texts, limit)
		}
	}
}

// saw reports whether the serial line has contained the text so far.
func (p *power) saw(text string) bool { return strings.Contains(p.tail(1<<30), text) }

func (p *power) press(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.keys, keys); err != nil {
		p.t.Fatal(err)
	}
}

// cut simulates a power cut.
func (p *power) cut() {
	_ = p.cmd.Process.Kill() // it may have ended already
	<-p.done
}

// off waits until the computer has shut down by itself.
func (p *power) off() {
	p.t.Helper()
	ctx, cancel := patience.Context(context.Background(), limit)
	defer cancel()
	select {
	case <-p.done:
		if p.err != nil {
			p.t.Fatalf("QEMU: %v", p.err)
		}
	case <-ctx.Done():
		p.t.Fatalf("the computer did not shut down within %v", limit)
	}
}

// poll is pollEvery with the pauses that suit one computer.
func (p *power) poll(what string, try func(context.Context) error) {
	p.t.Helper()
	p.pollEvery(500*time.Millisecond, what, try)
}

// pollEvery calls try again and again until it succeeds; on failure it reports the last
// error.
func (p *power) pollEvery(pause time.Duration, what string, try func(context.Context) error) {
	p.t.Helper()
	ctx, cancel := patience.Context(context.Background(), limit)
	defer cancel()
	for {
		one, stop := patience.Context(ctx, time.Minute)
		err := try(one)
		stop()
		if err == nil {
			return
		}
		select {
		case <-p.done:
			p.t.Fatalf("%s: the computer went off; before that: %v", what, err)
		case <-ctx.Done():
			p.t.Fatalf("%s: %v", what, err)
		case <-time.After(pause):
		}
	}
}

// ovmf returns the path of a UEFI file for QEMU: CODE or VARS.
func ovmf(t *testing.T, which string) string {
	t.Helper()
	path := "/usr/share/OVMF/OVMF_" + which + "_4M.fd"
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run make setup", err)
	}
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			t.Fatalf("%v: run make setup", err)
		}
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}
