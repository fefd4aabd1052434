// Package built builds this module's programs for tests that start them. The output of go build
// stays in the build directory: a program is linked once for all tests and packages, and again
// when something in it has changed.
package built

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

// made lists the calls of go build that this process has made already. Guarded by the lock.
var made = map[string]bool{}

const module = "github.com/basalt-gpu/basalt/"

// stripped programs have no tables for debuggers; linking them takes a third less time.
const stripped = "-s -w"

// Program builds the program in a package of this module, such as
// "appliance/cmd/basaltd", with the given build tags, and returns the path of
// the test's own copy. It skips the test in short mode.
func Program(t testing.TB, pkg string, tags ...string) string {
	t.Helper()
	form, flags := "host", []string(nil)
	if len(tags) > 0 {
		form = strings.Join(tags, ",")
		flags = []string{"-tags", form}
	}
	return filepath.Join(programs(t, form, nil, flags, pkg), filepath.Base(pkg))
}

// Release is like Program, with a version as a release has one.
func Release(t testing.TB, version, pkg string, tags ...string) string {
	t.Helper()
	flags := []string{"-ldflags", stripped + " -X main.version=" + version, "-tags", strings.Join(tags, ",")}
	return filepath.Join(programs(t, strings.Join(append(tags, version), ","), nil, flags, pkg), filepath.Base(pkg))
}

// Programs builds several programs and returns the folder of the test's own copies.
func Programs(t testing.TB, pkgs ...string) (dir string) {
	t.Helper()
	return programs(t, "host", nil, nil, pkgs...)
}

// Overlaid is like Programs, with some source files replaced. overlay is a file as described in
// "go help build", -overlay.
func Overlaid(t testing.TB, overlay string, pkgs ...string) (dir string) {
	t.Helper()
	return programs(t, "overlaid", nil, []string{"-overlay", overlay}, pkgs...)
}

// Static is like Program, for a guest: without C libraries.
func Static(t testing.TB, pkg string) string {
	t.Helper()
	return filepath.Join(programs(t, "static", []string{"CGO_ENABLED=0"}, nil, pkg), filepath.Base(pkg))
}

func programs(t testing.TB, form string, env, flags []string, pkgs ...string) (own string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("builds and starts %s", strings.Join(pkgs, ", "))
	}
	kept := filepath.Join(outputs(), "test", form)
	if err := os.MkdirAll(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	defer lock(t, kept+".lock")()
	// -buildvcs=false: a commit alone must not cause a link.
	args := append([]string{"build", "-buildvcs=false", "-ldflags", stripped, "-o", kept + "/"}, flags...)
	for _, p := range pkgs {
		args = append(args, module+strings.TrimPrefix(p, module))
	}
	if call := strings.Join(args, " "); !made[call] {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", call, err, out)
		}
		made[call] = true
	}
	// The path under the build directory may be inaccessible to another user, and the next
	// build may replace the files there.
	own = t.TempDir()
	if err := os.Chmod(filepath.Dir(own), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, p := range pkgs {
		if err := clone(filepath.Join(kept, filepath.Base(p)), filepath.Join(own, filepath.Base(p))); err != nil {
			t.Fatal(err)
		}
	}
	return own
}

// Guest builds the guest's library and the programs that test it, and returns the
// folders of the library and of the test programs ("api", "replay", "bench", "bad-12"). It skips the
// test in short mode.
func Guest(t testing.TB) (library, tests string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the guest's library")
	}
	build := guestMake(t, "apiprograms")
	return filepath.Join(build, "guest"), filepath.Join(build, "obj", "guest")
}

// GuestVariant builds the guest's library for another machine (gpu/guest/variant.mk) with
// the programs "unit" and "api", and returns their folders. It skips the test in short mode.
func GuestVariant(t testing.TB, variant string) (library, tests string) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the guest's library")
	}
	build := guestMake(t, variant+"-programs")
	return filepath.Join(build, "guest", variant), filepath.Join(build, "obj", "guest-"+variant)
}

// CUDA builds a program of gpu/guest/runtime/test with clang and Basalt's runtime
// library, and returns its path. It skips the test in short mode and without clang.
func CUDA(t testing.TB, name string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs a CUDA program")
	}
	if _, err := exec.LookPath("clang++-19"); err != nil {
		t.Skip("clang++-19 is not installed (package clang-19): no CUDA program can be built")
	}
	return filepath.Join(guestMake(t, "cuda-"+name), "obj", "guest", "cuda", name)
}

// guestMake builds a target of gpu/guest/Makefile and returns the build directory.
func guestMake(t testing.TB, target string) (build string) {
	t.Helper()
	build, err := filepath.Abs(outputs())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(build, "test"), 0o755); err != nil {
		t.Fatal(err)
	}
	defer lock(t, filepath.Join(build, "test", "guest.lock"))()
	cmd := exec.Command("make", "--no-print-directory", "-s", "BUILD="+build, target)
	cmd.Dir = filepath.Join(tree.Top(), "gpu/guest")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	return build
}

// Previous builds the program of another commit of this repository, with a version, and returns
// the test's own copy of it. The built program is cached by commit. The portal in it is that of
// this tree.
func Previous(t testing.TB, commit, version, pkg string, tags ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skipf("builds and starts %s of %s", pkg, commit)
	}
	top := tree.Top()
	kept := filepath.Join(outputs(), "test", "previous-"+commit)
	if err := os.MkdirAll(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	defer lock(t, kept+".lock")()
	program := filepath.Join(kept, filepath.Base(pkg))
	if _, err := os.Stat(program); err != nil {
		source := commitTree(t, top, commit)
		if out, err := exec.Command("cp", "-r", filepath.Join(top, "ui/dist"), filepath.Join(source, "ui/dist")).CombinedOutput(); err != nil {
			t.Fatalf("copy the portal: %v\n%s", err, out)
		}
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", program+".new", "-ldflags", stripped+" -X main.version="+version, "-tags", strings.Join(tags, ","), "./"+pkg)
		cmd.Dir = source
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build of commit %s: %v\n%s", commit, err, out)
		}
		if err := os.Rename(program+".new", program); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(t.TempDir(), filepath.Base(pkg))
	if err := clone(program, own); err != nil {
		t.Fatal(err)
	}
	return own
}

// PreviousGuest builds the guest's library and its demo programs of another commit, which are
// cached by commit, and returns their folder.
func PreviousGuest(t testing.TB, commit string) (library string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("builds and runs the guest's library of %s", commit)
	}
	kept := filepath.Join(outputs(), "test", "previous-guest-"+commit)
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		t.Fatal(err)
	}
	defer lock(t, kept+".lock")()
	if _, err := os.Stat(kept); err != nil {
		source, made := commitTree(t, tree.Top(), commit), kept+".new"
		cmd := exec.Command("make", "--no-print-directory", "-s", "BUILD="+made, "all")
		cmd.Dir = filepath.Join(source, "gpu/guest")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make of commit %s: %v\n%s", commit, err, out)
		}
		if err := os.Rename(made, kept); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(kept, "guest")
}

// commitTree returns a folder with the files of a commit of this repository, without the
// portal.
func commitTree(t testing.TB, top, commit string) (source string) {
	t.Helper()
	source = t.TempDir()
	script := `git -C "$1" cat-file -e "$3^{commit}" || exit 3; git -C "$1" archive "$3" | tar -x -C "$2" && rm -rf "$2/ui/dist"`
	if out, err := exec.Command("bash", "-eo", "pipefail", "-c", script, "-", top, source, commit).CombinedOutput(); err != nil {
		t.Fatalf("commit %s is not in this repository: %v\n%s\na shallow clone gets it by git fetch --unshallow", commit, err, out)
	}
	return source
}

// outputs returns the build directory of make.
func outputs() string {
	if dir := os.Getenv("BASALT_BUILD"); dir != "" {
		return dir
	}
	return filepath.Join(tree.Top(), "build")
}

// lock prevents concurrent builds of the same target by tests of other packages.
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

// clone creates a hard link to the file or, on another file system, a copy.
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
