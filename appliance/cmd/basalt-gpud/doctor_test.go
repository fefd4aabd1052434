package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/gpu/conformance/nested"
	"github.com/basalt-gpu/basalt/gpu/gpud"
	"github.com/basalt-gpu/basalt/gpu/worker/sandbox"
)

// machine creates a file system with a driver and a GPU, without the named files.
func machine(t *testing.T, without ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, p := range []string{"proc/driver/nvidia/version", "dev/nvidiactl", "dev/nvidia-uvm", "dev/nvidia0"} {
		path := filepath.Join(root, p)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("NVRM version: NVIDIA UNIX  580.1\nmore\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range without {
		if err := os.Remove(filepath.Join(root, p)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestDoctorSaysWhatIsMissing: the error names what is missing and what to do about it.
func TestDoctorSaysWhatIsMissing(t *testing.T) {
	if cards, _ := gpud.NVIDIACards(); len(cards) > 0 {
		t.Skip("GPU: this machine has the GPU that the test assumes to be missing")
	}
	for without, want := range map[string]string{
		"proc/driver/nvidia/version": "Install NVIDIA's driver",
		"dev/nvidia-uvm":             "modprobe nvidia-uvm",
		"dev/nvidiactl":              "nvidia-modprobe -c 0",
		"":                           "lists no GPU", // there is no GPU, regardless of these files
	} {
		var missing []string
		if without != "" {
			missing = append(missing, without)
		}
		var out bytes.Buffer
		d := doctor{root: machine(t, missing...), out: &out}
		if err := d.run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("doctor without %q: error %v, want %q\n%s", without, err, want, out.String())
		}
	}
}

func TestDoctorArguments(t *testing.T) {
	for want, args := range map[string][]string{"unexpected argument \"more\"": {"more"}, "not defined": {"--sockets", "x"}} {
		if err := runDoctor(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("doctor %v: error %v, want %q", args, err, want)
		}
	}
}

// TestDoctorLooksAtPermissions checks a device file that the workers' user may not use.
func TestDoctorLooksAtPermissions(t *testing.T) {
	root := machine(t)
	path := filepath.Join(root, "dev/nvidia0")
	if err := os.Chmod(path, 0o660); err != nil {
		t.Fatal(err)
	}
	i, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	owner := i.Sys().(*syscall.Stat_t)
	for name, x := range map[string]struct {
		user *syscall.Credential
		may  bool
	}{
		"another":             {&syscall.Credential{Uid: owner.Uid + 7, Gid: owner.Gid + 7}, false},
		"one of its group":    {&syscall.Credential{Uid: owner.Uid + 7, Gid: owner.Gid + 7, Groups: []uint32{owner.Gid}}, true},
		"its owner":           {&syscall.Credential{Uid: owner.Uid, Gid: owner.Gid + 7}, true},
		"this process's user": {nil, true},
	} {
		d := doctor{root: root, out: &bytes.Buffer{}}
		err := d.devices(sandbox.Sandbox{User: x.user})
		if (err == nil) != x.may || err != nil && !strings.Contains(err.Error(), "/dev/nvidia0 has mode "+fs.FileMode(0o660).String()) {
			t.Errorf("devices for %s: error %v, want success = %t", name, err, x.may)
		}
	}
}

// worker writes a script that replaces a worker; its output depends on its arguments.
func worker(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDoctorFindings: the error names the part of the confinement that causes the
// failure.
func TestDoctorFindings(t *testing.T) {
	fails := "echo 'check: a context: CUresult(304)' >&2; exit 1\n"
	for name, x := range map[string]struct{ script, want string }{
		"Landlock":  {"[ \"$4\" = landlock ] && exit 0\n" + fails, "It works without the list of files"},
		"seccomp":   {"[ \"$4\" = seccomp ] && exit 0\n" + fails, "It works without the filter of system calls"},
		"all of it": {fails, "It fails without confinement too"},
		"it dies":   {"echo 'check: libcuda opens the card: ok' >&2; kill -9 $$\n", `after "check: libcuda opens the card: ok"`},
	} {
		var out bytes.Buffer
		d := doctor{worker: worker(t, x.script), out: &out}
		if err := d.card(t.Context(), "GPU-1", sandbox.Sandbox{}); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %q", name, err, x.want)
		}
		if name != "it dies" && out.String() != "    a context: CUresult(304)\n" {
			t.Errorf("%s: printed %q, want the failed step", name, out.String())
		}
	}
}

// TestDoctorOnACard runs the doctor on a nested GPU, with a real worker in its sandbox.
func TestDoctorOnACard(t *testing.T) {
	if root := os.Getenv("DOCTOR_ROOT"); root != "" { // the process that has the card
		var out bytes.Buffer
		d := doctor{root: root, worker: os.Getenv("DOCTOR_WORKER"), out: &out}
		if err := d.run(t.Context()); err != nil || !strings.HasSuffix(out.String(), "all GPUs can be used for virtual GPUs\n") || strings.Count(out.String(), ": ok\n") != 8 {
			t.Errorf("doctor: error %v, want 8 successful steps:\n%s", err, out.String())
		}
		return
	}
	card := nested.Start(t, "", "1280MiB")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestDoctorOnACard$")
	cmd.Env = append(append(os.Environ(), card.Env()...), "DOCTOR_ROOT="+machine(t), "DOCTOR_WORKER="+filepath.Join(built.Programs(t, "appliance/cmd/basalt-worker"), "basalt-worker"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("doctor in the process that has the GPU: %v\n%s", err, out)
	}
}
