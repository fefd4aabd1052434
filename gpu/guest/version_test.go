package guest_test

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/gpu/abi"
)

// The commits of the first library, and of a host of version 1.1, which is the oldest host
// that today's library works with.
const (
	firstLibrary = "0e578165bd5e9e14ea185b4f882c86fe8b797f9c"
	oldestHost   = "3795d347e9649670807251ca384478390b6e8324"
)

// A guest with old tools continues to work when its host is updated.
func TestOlderLibrary(t *testing.T) {
	library := built.PreviousGuest(t, firstLibrary)
	g := startGPUD(t)
	for program, want := range map[string]string{
		"demo/vecadd": "vecadd: 1048576 elements, max error 0, OK\n", "demo/matmul": ", OK\n", "bin/cuda-info": "memory: 256 MiB",
	} {
		cmd := g.command(t, filepath.Join(library, program))
		cmd.Env = append(cmd.Env, "LD_LIBRARY_PATH="+filepath.Join(library, "lib"))
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s of %.9s: %v, want success and %q; it printed\n%s", program, firstLibrary, err, want, out)
		}
	}
}

// A guest with new tools works on an old host, without the features that came later.
func TestOlderHost(t *testing.T) {
	layer.NeedLong(t, "TestOlderLibrary")
	dir := t.TempDir()
	for _, name := range []string{"basalt-gpud", "basalt-worker"} {
		if err := os.Rename(built.Previous(t, oldestHost, "1.1", "appliance/cmd/"+name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	g := startProgram(t, filepath.Join(dir, "basalt-gpud"), "--soft-gpu", "vram=256MiB", "--no-nvidia")
	g.run(t, made("demo", "vecadd"))
	g.run(t, made("bin", "nvidia-smi"))
	for _, name := range []string{"threads", "copies", "callbacks", "pools", "many_launches"} {
		g.run(t, object("api"), name)
	}
	if out, err := g.command(t, object("api"), "managed").CombinedOutput(); err == nil || !strings.Contains(string(out), "CUDA_ERROR_NOT_SUPPORTED") {
		t.Errorf("managed memory, which came later: %v, want a failure with CUDA_ERROR_NOT_SUPPORTED; it printed\n%s", err, out)
	}
}

// If library and host are incompatible, the library prints both versions and what to do,
// also without BASALT_VERBOSE.
func TestVersionMismatch(t *testing.T) {
	dir, err := os.MkdirTemp("", "mismatch") // t.TempDir may be too long for the path of a unix socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	g := &gpud{socket: filepath.Join(dir, "s")}
	l, err := net.Listen("unix", g.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	const text = "the guest library has protocol version 1.1, this host supports 2.0 to 2.3: update the older of the two"
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			refused := binary.LittleEndian.AppendUint32(nil, abi.Magic)
			refused = binary.LittleEndian.AppendUint16(refused, abi.MsgRefused)
			refused = binary.LittleEndian.AppendUint16(refused, 0)
			refused = binary.LittleEndian.AppendUint32(refused, uint32(len(text)))
			refused = binary.LittleEndian.AppendUint32(refused, uint32(abi.ErrDriverMismatch))
			_, _ = c.Write(append(refused, text...))
			go func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() }()
		}
	}()
	for path, says := range map[string]string{
		made("demo", "vecadd"):    "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803)",
		made("bin", "nvidia-smi"): "Driver/library version mismatch",
	} {
		cmd := g.command(t, path)
		cmd.Env = append(cmd.Env, "BASALT_VERBOSE=")
		out, err := cmd.CombinedOutput()
		if err == nil || strings.Count(string(out), text) != 1 || !strings.Contains(string(out), says) || !strings.Contains(string(out), "BASALT-TOOLS") {
			t.Errorf("%s: %v, want a failure, %q, the host's message once, and BASALT-TOOLS; it printed\n%s", filepath.Base(path), err, says, out)
		}
	}
}
