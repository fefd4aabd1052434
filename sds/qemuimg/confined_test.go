package qemuimg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sds"
)

// parentVariable has this program run its qemu-img on a file, for TestDiesWithParent.
const parentVariable = "BASALT_TEST_QEMUIMG_PARENT"

func TestMain(m *testing.M) {
	if name := os.Getenv(parentVariable); name != "" {
		f, err := os.Open(name)
		if err == nil {
			_, err = inspect(context.Background(), f, "check")
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// open returns a folder that all users can enter.
func open(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// imposter puts a program in the place of qemu-img that does what an image could make it
// do.
func imposter(t *testing.T, script string) {
	t.Helper()
	dir := open(t)
	if err := os.WriteFile(filepath.Join(dir, "qemu-img"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// image returns a file as Receive makes them, in a folder that only this user can enter.
func image(t *testing.T, content string) *os.File {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "image")
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestConfined has a qemu-img that an image has taken over try what it must not.
func TestConfined(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("host: only root can drop its rights")
	}
	secret := filepath.Join(open(t), "secret")
	if err := os.WriteFile(secret, []byte("the cluster's key"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := image(t, "of a user")
	imposter(t, `cat "$2"; echo
id -u; id -g; id -G
grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs)' /proc/self/status
cat '`+secret+`' && echo secret
echo x >'`+f.Name()+`' && echo written
echo x >>/dev/fd/3 && echo written
kill -0 `+strconv.Itoa(os.Getpid())+` && echo signals
tail -n +3 /proc/self/net/dev
echo "$BASALT_TEST_SECRET"
exit 0
`)
	t.Setenv("BASALT_TEST_SECRET", "in the environment")
	out, err := inspect(t.Context(), f, "check")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	want := strings.Fields("of a user 65534 65534 65534 CapPrm: 0000000000000000 CapEff: 0000000000000000 CapBnd: 0000000000000000 NoNewPrivs: 1 lo:")
	for i, w := range want {
		if i >= len(got) || got[i] != w {
			t.Fatalf("a confined program reports\n%s\nwant %q", out, want)
		}
	}
	if rest := got[len(want):]; strings.Trim(strings.Join(rest, ""), "0") != "" {
		t.Errorf("a confined program also reports %q, want only counters of the loopback device that are 0", rest)
	}
}

// TestDiesWithParent kills a process while its confined qemu-img runs.
func TestDiesWithParent(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("host: only root can drop its rights")
	}
	pids := filepath.Join(open(t), "pids")
	if err := errors.Join(os.WriteFile(pids, nil, 0o666), os.Chmod(pids, 0o666)); err != nil {
		t.Fatal(err)
	}
	imposter(t, "echo $$ >'"+pids+"'\nexec sleep 1000\n")
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), parentVariable+"="+image(t, "").Name())
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	patience.Until(t, time.Minute, "qemu-img runs", func() bool {
		text, err := os.ReadFile(pids)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	patience.Until(t, time.Minute, "qemu-img ends with its parent", func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	})
}

// qcow2 returns a qcow2 image with some bytes in it, and the raw disk.
func qcow2(t *testing.T) (f *os.File, raw string) {
	t.Helper()
	f = image(t, "")
	raw = filepath.Join(t.TempDir(), "raw")
	if err := errors.Join(os.WriteFile(raw, []byte(strings.Repeat("disk", 1<<16)), 0o600), os.Truncate(raw, 64<<20)); err != nil {
		t.Fatal(err)
	}
	command(t, "qemu-img", "convert", "-f", "raw", "-O", "qcow2", raw, f.Name())
	return f, raw
}

func command(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
}

// TestVerify checks that a valid image is accepted although it is in a folder that the
// confined program cannot enter, and a damaged one refused.
func TestVerify(t *testing.T) {
	f, _ := qcow2(t)
	if err := Verify(t.Context(), f, sds.QCOW2, 64<<20); err != nil {
		t.Errorf("Verify of a valid image = %v", err)
	}
	if err := Verify(t.Context(), f, sds.QCOW2, 65<<20); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Verify with another size = %v, want code %s", err, api.CodeInvalid)
	}
	if err := f.Truncate(1 << 17); err != nil {
		t.Fatal(err)
	}
	if err := Verify(t.Context(), f, sds.QCOW2, 64<<20); api.CodeOf(err) != api.CodeInvalid {
		t.Errorf("Verify of a truncated image = %v, want code %s", err, api.CodeInvalid)
	}
}

// TestExport copies an image through a confined qemu-nbd.
func TestExport(t *testing.T) {
	f, raw := qcow2(t)
	copied := filepath.Join(t.TempDir(), "copy")
	convert := func(name string) error {
		out, err := exec.CommandContext(t.Context(), "qemu-img", "convert", "-f", "raw", "-O", "raw", name, copied).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("convert: %w: %s", err, out)
		}
		return err
	}
	if err := Export(t.Context(), f.Name(), t.TempDir(), sds.QCOW2, convert); err != nil {
		t.Fatal(err)
	}
	command(t, "cmp", raw, copied)
	var st syscall.Stat_t
	if err := syscall.Stat(copied, &st); err != nil || st.Blocks*512 > 1<<20 {
		t.Errorf("the copy has %d bytes on the disk, error %v; want only those that are not zero", st.Blocks*512, err)
	}
	if _, err := f.WriteAt([]byte("no qcow2"), 0); err != nil {
		t.Fatal(err)
	}
	if err := Export(t.Context(), f.Name(), t.TempDir(), sds.QCOW2, convert); err == nil || !strings.Contains(err.Error(), "qemu-nbd: ") {
		t.Errorf("Export of an image that is no qcow2 = %v, want what qemu-nbd says", err)
	}
}
