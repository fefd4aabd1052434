// Package dev tests the scripts in this folder.
package dev

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// caching is a cache and a folder that it fills. The command creates a file "out" in
// "$1"; each run of it appends a line to the file runs.
type caching struct {
	t    *testing.T
	root string
}

func newCaching(t *testing.T) *caching {
	t.Helper()
	for _, tool := range []string{"flock", "zstd", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v: run make setup", err)
		}
	}
	return &caching{t, t.TempDir()}
}

func (c *caching) path(name string) string { return filepath.Join(c.root, name) }

// command returns a command that fills DIR with "out", which contains text.
func (c *caching) command(key, dir, text string, before ...string) *exec.Cmd {
	script := "echo made >>" + c.path("runs") + "; " + strings.Join(append(before, ""), "; ") + `echo ` + text + ` >"$1/out"`
	cmd := exec.Command("./cache.sh", "thing", key, c.path(dir), "out", "--", "sh", "-euc", script, "make")
	cmd.Env = append(os.Environ(), "BASALT_CACHE="+c.path("cache"))
	return cmd
}

// get runs the command and returns the content of DIR/out afterwards.
func (c *caching) get(key, dir, text string) string {
	c.t.Helper()
	if out, err := c.command(key, dir, text).CombinedOutput(); err != nil {
		c.t.Fatalf("%s: %v\n%s", key, err, out)
	}
	return c.read(dir + "/out")
}

func (c *caching) read(name string) string {
	c.t.Helper()
	raw, err := os.ReadFile(c.path(name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	return strings.TrimSpace(string(raw))
}

// made returns how often the command ran.
func (c *caching) made() int { return strings.Count(c.read("runs"), "made") }

// entries returns the keys in the cache, and other files in it or in the folders.
func (c *caching) entries() (keys, other []string) {
	c.t.Helper()
	for _, pattern := range []string{"cache/thing/*", "cache/thing/.new*", "*/.made*"} {
		found, err := filepath.Glob(c.path(pattern))
		if err != nil {
			c.t.Fatal(err)
		}
		for _, f := range found {
			if key, ok := strings.CutSuffix(filepath.Base(f), ".tar.zst"); ok {
				keys = append(keys, key)
			} else if filepath.Base(f) != "lock" {
				other = append(other, f)
			}
		}
	}
	return keys, other
}

func TestCacheMakesOnce(t *testing.T) {
	c := newCaching(t)
	for _, step := range []struct {
		key, dir, text, want string
		made                 int
	}{
		{"k1", "one", "first", "first", 1},
		{"k1", "two", "second", "first", 1}, // another clone
		{"k2", "two", "second", "second", 2},
		{"k1", "two", "third", "first", 2},
	} {
		if got := c.get(step.key, step.dir, step.text); got != step.want || c.made() != step.made {
			t.Errorf("%+v: out = %q after %d runs, want %q after %d", step, got, c.made(), step.want, step.made)
		}
	}
	if _, other := c.entries(); len(other) > 0 {
		t.Errorf("left-over files: %q, want none", other)
	}
}

func TestCacheAnew(t *testing.T) {
	c := newCaching(t)
	c.get("k", "one", "old")
	cmd := c.command("k", "one", "new")
	cmd.Args = append([]string{cmd.Args[0], "--anew"}, cmd.Args[1:]...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cache.sh --anew: %v\n%s", err, out)
	}
	if got := c.read("one/out"); got != "new" {
		t.Errorf("out = %q, want new", got)
	}
	if got := c.get("k", "two", "newer"); got != "new" {
		t.Errorf("content of the entry = %q, want new", got)
	}
}

// TestCacheKeepsTwo checks that the two most recently used entries are kept.
func TestCacheKeepsTwo(t *testing.T) {
	c := newCaching(t)
	for _, key := range []string{"a", "b", "a", "c"} {
		c.get(key, "one", key)
	}
	if keys, _ := c.entries(); strings.Join(keys, " ") != "a c" {
		t.Errorf("entries of the cache = %q, want a and c", keys)
	}
}

// TestCacheAtOnce checks several clones of one tree that build concurrently.
func TestCacheAtOnce(t *testing.T) {
	c := newCaching(t)
	var wg sync.WaitGroup
	for _, dir := range []string{"one", "two", "three"} {
		wg.Go(func() {
			if out, err := c.command("k", dir, "same", "sleep 0.1").CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", dir, err, out)
			}
		})
	}
	wg.Wait()
	for _, dir := range []string{"one", "two", "three"} {
		if got := c.read(dir + "/out"); got != "same" {
			t.Errorf("%s/out = %q, want same", dir, got)
		}
	}
	if c.made() != 1 {
		t.Errorf("the command ran %d times, want 1", c.made())
	}
}

// TestCacheKilled checks that a killed build leaves no entry and no lock, and that the
// next one removes its files.
func TestCacheKilled(t *testing.T) {
	c := newCaching(t)
	fifo := c.path("fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := c.command("k", "one", "half", `echo half >"$1/out"`, "read nothing <"+fifo)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, time.Minute, "the command at work", func() bool { return c.made() == 1 })
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the killed build succeeded, want an error")
	}
	if keys, other := c.entries(); len(keys) > 0 || len(other) == 0 || c.read("one/out") != "" {
		t.Fatalf("after the kill the cache has entries %q, out is %q, and other files are %q; want only other files", keys, c.read("one/out"), other)
	}
	if got := c.get("k", "one", "whole"); got != "whole" {
		t.Errorf("out = %q, want whole", got)
	}
	if _, other := c.entries(); len(other) > 0 {
		t.Errorf("left-over files: %q, want none", other)
	}
}

// TestCacheFailure checks that a failed build is neither stored nor delivered.
func TestCacheFailure(t *testing.T) {
	c := newCaching(t)
	for _, before := range []string{"exit 3", "exit 0"} { // 0: it has created nothing
		if out, err := c.command("k", "one", "x", before).CombinedOutput(); err == nil {
			t.Errorf("build with %s succeeded, want an error: %s", before, out)
		}
	}
	if keys, other := c.entries(); len(keys)+len(other) > 0 || c.read("one/out") != "" {
		t.Errorf("the cache has entries %q and files %q, want none", keys, other)
	}
}

// TestCacheDamaged checks that a truncated or modified entry is built again.
func TestCacheDamaged(t *testing.T) {
	c := newCaching(t)
	c.get("k", "one", "first")
	entry := c.path("cache/thing/k.tar.zst")
	raw, err := os.ReadFile(entry)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte{}, raw...)
	flipped[len(raw)/2] ^= 0x40
	for i, bad := range [][]byte{nil, raw[:len(raw)/2], flipped} {
		if err := os.WriteFile(entry, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := c.get("k", "one", "again"); got != "again" || c.made() != i+2 {
			t.Errorf("damage %d: out = %q after %d runs, want again after %d", i, got, c.made(), i+2)
		}
	}
}

// TestCacheTree checks that a tree with several owners is restored unchanged.
func TestCacheTree(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("host: creating files of other users needs root")
	}
	c := newCaching(t)
	const make = `cd "$1"; mkdir -m 2750 tree; echo x >tree/file; ln tree/file tree/same; ln -s file tree/link; mkfifo tree/fifo
		mknod tree/null c 1 3; chmod 4751 tree/file; chown 1234:56 tree/file tree; setfattr -n user.a -v b tree/file 2>/dev/null || true
		setcap cap_net_raw+ep tree/file 2>/dev/null || true; touch -d @1000000000 tree/file`
	list := func(dir string) string {
		out, err := exec.Command("sh", "-euc", `cd "$1"; find . -mindepth 1 | sort | while read -r f; do stat -c '%n %F %a %u:%g %h %t:%T' "$f"; readlink "$f" || true; done
			stat -c %Y file; getcap file 2>/dev/null || true; getfattr -d file 2>/dev/null || true`, "list", dir).CombinedOutput()
		if err != nil {
			t.Fatalf("list %s: %v\n%s", dir, err, out)
		}
		return string(out)
	}
	for _, dir := range []string{"one", "two"} {
		cmd := exec.Command("./cache.sh", "tree", "k", c.path(dir), "tree", "--", "sh", "-euc", make, "make")
		cmd.Env = append(os.Environ(), "BASALT_CACHE="+c.path("cache"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("fill %s from the cache: %v\n%s", dir, err, out)
		}
	}
	one, two := list(c.path("one/tree")), list(c.path("two/tree"))
	if one != two || !strings.Contains(one, "1234:56") {
		t.Errorf("tree out of the cache:\n%s\nwant as built, with owner 1234:56:\n%s", two, one)
	}
}
