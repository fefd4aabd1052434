package container

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestParseCall(t *testing.T) {
	for args, want := range map[string]call{
		"--version": {bundle: ".", format: "text"},
		"--root /var/run/docker/runtime-runc/moby --log /l/log.json --log-format json --systemd-cgroup create --bundle /b --pid-file /b/init.pid --console-socket /s 0123": {"create", "/b", "/l/log.json", "json"},
		"--log=/l --debug run -b=/b c":                {"run", "/b", "/l", "text"},
		"--root create delete --force c":              {"delete", ".", "", "text"},
		"exec --process /p.json c create --bundle /x": {"exec", ".", "", "text"},
		"create": {"create", ".", "", "text"},
		"":       {"", ".", "", "text"},
		"create --no-pivot --bundle /b --preserve-fds 3 c": {"create", "/b", "", "text"},
		"-- create": {"", ".", "", "text"},
	} {
		if got := parseCall(strings.Fields(args)); got != want {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	dir := t.TempDir()
	for format, want := range map[string]string{"json": `"msg":"basalt: no \"x\""`, "text": `msg="basalt: no \"x\""`} {
		var stderr strings.Builder
		file := filepath.Join(dir, format)
		write(t, file, "before\n")
		call{log: file, format: format}.report("basalt", errors.New(`no "x"`), &stderr)
		if got := read(t, file); !strings.HasPrefix(got, "before\n") || !strings.Contains(got, want) || strings.Count(got, "\n") != 2 {
			t.Errorf("%s: %s", format, got)
		}
		if stderr.String() != "basalt: no \"x\"\n" {
			t.Errorf("stderr: %q", stderr.String())
		}
	}
}

// An image without glibc says so, in place of the kernel's "no such file".
func TestSmi(t *testing.T) {
	root := t.TempDir()
	if err := smi(root, hiddenProgram, []string{"nvidia-smi"}); err == nil || !strings.Contains(err.Error(), "were given a vGPU") {
		t.Errorf("nothing there: %v", err)
	}
	program := "/bin/true" // it has a loader, whatever this test's own program has
	if loader, err := interpreter(program); err != nil || !strings.HasPrefix(loader, "/lib") {
		t.Fatalf("loader of %s: %q, %v", program, loader, err)
	}
	write(t, filepath.Join(root, hiddenProgram), read(t, program))
	if err := smi(root, hiddenProgram, nil); err == nil || !strings.Contains(err.Error(), "no known C library was found") {
		t.Errorf("an empty image: %v", err)
	}
	write(t, filepath.Join(root, "lib/ld-musl-x86_64.so.1"), "")
	if err := smi(root, hiddenProgram, nil); err == nil || !strings.Contains(err.Error(), "no GNU C library (/lib") || !strings.Contains(err.Error(), "it uses musl") {
		t.Errorf("an image with musl: %v", err)
	}
}
