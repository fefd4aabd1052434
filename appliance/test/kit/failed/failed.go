// Package failed keeps the evidence of a failed test: build/failed/PACKAGE/TEST contains its
// logs, screenshots, domains and databases after the test has cleaned up. The report of "make
// test" lists these folders at its end.
package failed

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
)

// largest is the number of bytes at the end of a file that are kept.
const largest = 8 << 20

// Keep calls collect with a new folder if the test has failed by its cleanup. Cleanups run in
// reverse order, so call Keep after the resources that collect reads have registered theirs.
func Keep(t testing.TB, collect func(f Folder)) {
	t.Helper()
	dir := path(t)
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Logf("the evidence of the failure is not kept: %v", err)
			return
		}
		collect(Folder(dir))
		t.Logf("kept: %s", dir)
	})
}

// path returns the test's folder, which is named after the package and the test.
func path(t testing.TB) string {
	top := tree.Top()
	build := os.Getenv("BASALT_BUILD")
	if build == "" {
		build = filepath.Join(top, "build")
	}
	here, _ := os.Getwd() // a test runs in its package's folder
	pkg, err := filepath.Rel(top, here)
	if err != nil {
		pkg = filepath.Base(here)
	}
	return filepath.Join(build, "failed", strings.ReplaceAll(pkg, "/", "_"), filepath.FromSlash(t.Name()))
}

// Folder is the folder with the evidence of a failed test. Its methods write errors to a file
// in the folder itself, so that one missing item does not prevent the others from being kept.
type Folder string

// Files keeps the end of every file that matches one of the patterns, named after its path.
func (f Folder) Files(patterns ...string) {
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil {
			f.logError("%s: %v", p, err)
		}
		for _, file := range found {
			if err := f.file(file); err != nil {
				f.logError("%s: %v", file, err)
			}
		}
	}
}

func (f Folder) file(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	to := filepath.Join(string(f), strings.ReplaceAll(strings.Trim(path, "/"), "/", "_"))
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := in.Seek(max(0, info.Size()-largest), io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(in, largest))
	return err
}

// Text keeps a text in a file of that name.
func (f Folder) Text(name, text string) {
	if err := os.WriteFile(filepath.Join(string(f), name), []byte(text), 0o644); err != nil {
		f.logError("%s: %v", name, err)
	}
}

// Output keeps the output of a command in a file of that name.
func (f Folder) Output(name string, argv ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		out = append(out, "\n"+err.Error()...)
	}
	f.Text(name, strings.Join(argv, " ")+"\n"+string(out))
}

// logError records an error of keeping evidence in not-kept.txt.
func (f Folder) logError(format string, args ...any) {
	log, err := os.OpenFile(filepath.Join(string(f), "not-kept.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return
	}
	defer log.Close()
	_, _ = fmt.Fprintf(log, format+"\n", args...)
}
