// Package built makes this module's programs for tests that start them. What
// go build has made stays in the build directory: it is linked once for all
// tests and packages, and again when something in it has changed.
package built

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

const module = "github.com/basalt-gpu/basalt/"

// Program builds the program in a package of this module, such as
// "appliance/cmd/basaltd", with the given build tags, and returns the path of
// the test's own copy. It skips the test in short mode.
func Program(t testing.TB, pkg string, tags ...string) string {
	t.Helper()
	if len(tags) == 0 {
		return program(t, pkg, "host", nil)
	}
	list := strings.Join(tags, ",")
	return program(t, pkg, list, nil, "-tags", list)
}

// Static is Program for a guest: without C libraries.
func Static(t testing.TB, pkg string) string {
	t.Helper()
	return program(t, pkg, "static", []string{"CGO_ENABLED=0"})
}

func program(t testing.TB, pkg, form string, env []string, flags ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and starts " + filepath.Base(pkg))
	}
	pkg = strings.TrimPrefix(pkg, module)
	dir := filepath.Join(outputs(), "test", form)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(dir, filepath.Base(pkg))
	defer lock(t, kept+".lock")()
	cmd := exec.Command("go", append(append([]string{"build", "-o", kept}, flags...), module+pkg)...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", pkg, err, out)
	}
	// The path under the build directory need not be open to another user, and
	// the next build may replace what lies there.
	own := filepath.Join(t.TempDir(), filepath.Base(pkg))
	if err := clone(kept, own); err != nil {
		t.Fatal(err)
	}
	return own
}

// outputs is where make puts what it builds.
func outputs() string {
	if dir := os.Getenv("BASALT_BUILD"); dir != "" {
		return dir
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../../build")
}

// lock keeps the tests of other packages from building the same at once.
func lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Close() }
}

// clone makes a second name for the file or, on another file system, a copy.
func clone(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
