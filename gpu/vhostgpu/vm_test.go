package vhostgpu

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
)

const probe = "github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest/probe"

// testLog writes to the test's log until the test has ended.
type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", b)
	return len(b), nil
}

// serve runs a server; it ends with the test.
func serve(t *testing.T, spawner Spawner) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "vgpu")
	s, err := Listen(socket, -1, spawner, DefaultLimits(), slog.New(slog.NewTextHandler(testLog{t}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // worker processes end with the thread
		ended <- s.Run(stop, nil, nil)
	}()
	t.Cleanup(func() {
		stop <- struct{}{}
		s.Wake()
		if err := <-ended; err != nil {
			t.Errorf("server ended with %v, want no error", err)
		}
		s.Close()
		if p, ok := spawner.(*peers); ok {
			p.wg.Wait()
		}
	})
	return socket
}

// A real guest kernel finds the vGPU, and a process in it communicates with its
// worker.
func TestGuestRoundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("boots a virtual machine")
	}
	spawner := &peers{t: t, prepare: func(p *peer) { p.Pattern = true }}
	socket := serve(t, spawner)
	g := testguest.Boot(t, testguest.Options{VGPU: socket, Files: map[string]string{"probe": testguest.Program(t, probe)},
		Run: "ls /dev/dri; /probe roundtrip 100 && read line && /probe free"})
	g.Expect("renderD128")
	g.Expect(fmt.Sprintf("probe: vGPU version %d.%d", abi.Major, abi.Minor))
	t.Log(g.Expect(`probe: 100 round trips.*`))
	g.Expect("probe: ok")
	expectObserved(t, socket, Observed{Driver: true, Library: true})
	g.Type("go on")
	g.Expect("probe: ok")
	g.Expect("testguest: exit 0")
	patience.Receive(t, testguest.Patience, "the guest powers off", g.Done())
	for i := range 2 {
		if l := spawner.get(i).log(); !slices.Contains(l, "end") {
			t.Errorf("log of worker %d = %q, want end in it", i, l)
		}
	}
	t.Logf("worker received %q", spawner.get(0).log()[:4])
}

// The socket appears only once it can be connected to, and only QEMU can connect.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vgpu")
	for _, c := range []struct {
		group int
		mode  os.FileMode
	}{{-1, 0o600}, {os.Getgid(), 0o660}} { // the second replaces the first
		s, err := Listen(path, c.group, &mutes{}, DefaultLimits(), discard)
		if err != nil {
			t.Fatal(err)
		}
		st, err := os.Stat(path)
		if err != nil || st.Mode() != os.ModeSocket|c.mode {
			t.Errorf("group %d: mode %v, %v; want a socket with %v", c.group, st.Mode(), err, c.mode)
		}
		unix.Close(s.listen) // as after a crash
	}
	if left, _ := filepath.Glob(path + "?*"); len(left) > 0 {
		t.Errorf("files left: %q, want none", left)
	}
	if _, err := Listen(filepath.Join(path, "no"), -1, &mutes{}, DefaultLimits(), discard); err == nil {
		t.Error("Listen below a socket's path returned no error")
	}
}
