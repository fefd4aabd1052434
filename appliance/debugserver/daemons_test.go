package debugserver_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
)

// daemon describes one of the daemons of a node.
type daemon struct {
	pkg, tags string
	// args returns the arguments, and listens the addresses that the daemon listens on
	// without --debug-listen; api is for the daemon with a TCP address.
	args    func(dir, api string) []string
	listens func(dir, api string) []string
}

func inDir(names ...string) func(dir, _ string) []string {
	return func(dir, _ string) (all []string) {
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		return all
	}
}

var daemons = map[string]daemon{
	"basaltd": {"appliance/cmd/basaltd", "basalt_fake", func(dir, api string) []string {
		return []string{"--data", filepath.Join(dir, "data"), "--run", dir, "--listen", api, "--libvirt", "fake:", "--fence", "none"}
	}, func(dir, api string) []string { return []string{api, filepath.Join(dir, "api.sock")} }},
	"basalt-gpud": {"appliance/cmd/basalt-gpud", "", func(dir, _ string) []string {
		return []string{"--state", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "gpud.sock"), "--no-nvidia", "--soft-gpu", "vram=64MiB"}
	}, inDir("gpud.sock")},
	"basalt-vgpu": {"appliance/cmd/basalt-vgpu", "", func(dir, _ string) []string {
		return []string{"--socket", filepath.Join(dir, "vgpu"), "--vgpu", "v", "--gpud", filepath.Join(dir, "gpud.sock"), "--worker", "/none"}
	}, inDir("vgpu~")}, // bound under this name, then renamed
}

// Each daemon serves its profiles on the socket that it is given, and on no address
// without one.
func TestDaemons(t *testing.T) {
	for name, d := range daemons {
		program := built.Program(t, d.pkg, strings.Fields(d.tags)...)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, api := shortDir(t), port.Address(t)
			pid := start(t, program, d.args(dir, api)...)
			waitForListeners(t, pid, d.listens(dir, api))

			dir, api = shortDir(t), port.Address(t)
			socket := filepath.Join(dir, "debug.sock")
			pid = start(t, program, append(d.args(dir, api), "--debug-listen", "unix:"+socket)...)
			waitForListeners(t, pid, append(d.listens(dir, api), socket))
			profiles(t, socket)
			if name == "basalt-vgpu" { // it executes a new program in the same process
				if err := syscall.Kill(pid, syscall.SIGUSR2); err != nil {
					t.Fatal(err)
				}
				patience.Until(t, time.Minute, "basalt-vgpu has executed itself", func() bool {
					line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					return err == nil && bytes.Contains(line, []byte("--handover-fd"))
				})
				waitForListeners(t, pid, append(d.listens(dir, api), socket))
				profiles(t, socket)
			}

			out, err := exec.Command(program, append(d.args(shortDir(t), api), "--debug-listen", "0.0.0.0:6060")...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "want a loopback address") {
				t.Errorf("daemon that listens for profiles on all interfaces: %v, %q; want it refused", err, out)
			}
		})
	}
}

// shortDir returns a temporary folder whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "debug")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func start(t *testing.T, program string, args ...string) (pid int) {
	t.Helper()
	cmd := exec.Command(program, args...)
	var log bytes.Buffer // read after Wait only
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		select {
		case <-ended:
		case <-patience.After(30 * time.Second):
			t.Errorf("%s did not exit within 30 s of SIGTERM", filepath.Base(program))
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s %q wrote:\n%s", filepath.Base(program), args, log.String())
		}
	})
	return cmd.Process.Pid
}

func waitForListeners(t *testing.T, pid int, want []string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	defer func() {
		if t.Failed() {
			t.Logf("process %d listens on %q, want %q", pid, got, want)
		}
	}()
	patience.Until(t, time.Minute, fmt.Sprintf("process %d listens on %q", pid, want), func() bool {
		got = listeners(t, pid)
		return slices.Equal(got, want)
	})
}

// listeners returns the sorted addresses on which the process accepts connections: the
// sockets among its descriptors that proc_pid_net(5) lists as listening.
func listeners(t *testing.T, pid int) (all []string) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", pid)
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]bool{} // inodes
	for _, f := range files {
		if target, err := os.Readlink(proc + "fd/" + f.Name()); err == nil && strings.HasPrefix(target, "socket:[") {
			own[strings.Trim(target, "socket:[]")] = true
		}
	}
	for _, line := range lines(t, proc+"net/unix") {
		// Num RefCount Protocol Flags Type St Inode Path; flag __SO_ACCEPTCON
		if f := strings.Fields(line); len(f) == 8 && f[3] == "00010000" && own[f[6]] {
			all = append(all, f[7])
		}
	}
	for _, table := range []string{"net/tcp", "net/tcp6"} {
		for _, line := range lines(t, proc+table) {
			// sl local_address rem_address st … inode; state TCP_LISTEN
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !own[f[9]] {
				continue
			}
			host, number, _ := strings.Cut(f[1], ":")
			n, err := strconv.ParseUint(number, 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			if host == "0100007F" {
				host = "127.0.0.1"
			}
			all = append(all, fmt.Sprintf("%s:%d", host, n))
		}
	}
	slices.Sort(all)
	return all
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(raw), "\n")
}

// profiles fetches three profiles and checks their content.
func profiles(t *testing.T, socket string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	get := func(path string) []byte {
		response, err := client.Get("http://debug/debug/pprof/" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %s, %v: %s", path, response.Status, err, body)
		}
		return body
	}
	if got := get("goroutine?debug=2"); !bytes.Contains(got, []byte("main.main(")) {
		t.Errorf("goroutine profile does not contain main.main:\n%s", got)
	}
	for path, sampleType := range map[string]string{"profile?seconds=1": "cpu", "heap": "inuse_space"} {
		packed, err := gzip.NewReader(bytes.NewReader(get(path)))
		if err != nil {
			t.Fatalf("decompress profile %s: %v", path, err)
		}
		profile, err := io.ReadAll(packed)
		if err != nil || !bytes.Contains(profile, []byte(sampleType)) {
			t.Errorf("profile %s: %v, %d bytes without samples of %s", path, err, len(profile), sampleType)
		}
	}
}
