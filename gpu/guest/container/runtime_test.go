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
			t.Errorf("parseCall(%s) = %+v, want %+v", args, got, want)
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
			t.Errorf("log in format %s: %s, want one line appended, with %s", format, got, want)
		}
		if stderr.String() != "basalt: no \"x\"\n" {
			t.Errorf("stderr = %q, want %q", stderr.String(), "basalt: no \"x\"\n")
		}
	}
}

// In an image without glibc, smi reports that in place of the kernel's "no such file".
func TestSmi(t *testing.T) {
	root := t.TempDir()
	if err := smi(root, hiddenProgram, []string{"nvidia-smi"}); err == nil || !strings.Contains(err.Error(), "were given a vGPU") {
		t.Errorf("smi without nvidia-smi: %v, want an error that the file stands in for it", err)
	}
	program := "/bin/true" // a dynamic program; the test's own may be static
	if loader, err := interpreter(program); err != nil || !strings.HasPrefix(loader, "/lib") {
		t.Fatalf("loader of %s = %q (%v), want one in /lib", program, loader, err)
	}
	write(t, filepath.Join(root, hiddenProgram), read(t, program))
	if err := smi(root, hiddenProgram, nil); err == nil || !strings.Contains(err.Error(), "no known C library was found") {
		t.Errorf("smi in an empty image: %v, want an error that no C library was found", err)
	}
	write(t, filepath.Join(root, "lib/ld-musl-x86_64.so.1"), "")
	if err := smi(root, hiddenProgram, nil); err == nil || !strings.Contains(err.Error(), "no GNU C library (/lib") || !strings.Contains(err.Error(), "it uses musl") {
		t.Errorf("smi in an image with musl: %v, want an error that glibc is missing and musl is used", err)
	}
}
