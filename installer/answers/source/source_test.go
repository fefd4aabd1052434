package source

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/strictyaml"
)

func TestFromCommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"boot=live quiet":                                                         "/dev/disk/by-label/BASALT-ANS:/answers.yaml",
		"basalt.answers=CFG:node1.yaml":                                           "/dev/disk/by-label/CFG:/node1.yaml",
		"basalt.answers=CFG:/../../etc/x":                                         "/dev/disk/by-label/CFG:/etc/x",
		`basalt.answers="/dev/sdb1:/a/b.yaml"`:                                    "/dev/sdb1:/a/b.yaml",
		"basalt.answers=/dev/disk/by-path/pci-0:1.0-usb:/a":                       "/dev/disk/by-path/pci-0:1.0-usb:/a",
		"basalt.answers=http://h/a basalt.network=dhcp":                           "http://h/a",
		"basalt.answers=https://h/a basalt.network=e0,1.2.3.4/24,1.2.3.1,9.9.9.9": "https://h/a",
	} {
		if s, err := FromCommandLine(line); err != nil || s.String() != want {
			t.Errorf("FromCommandLine(%s) = %s, %v; want %s", line, s, err, want)
		}
	}
	for line, says := range map[string]string{
		"basalt.answers=":                                          "names no file",
		"basalt.answers=CFG":                                       "names no file",
		"basalt.answers=CFG:/":                                     "names no file",
		"basalt.answers=/dev/../etc:/x":                            "names no medium",
		"basalt.answers=a/b:/x":                                    "names no medium",
		"basalt.answers=http:///x":                                 "no URL",
		"basalt.answers=http://h/a":                                "needs basalt.network",
		"basalt.answers=http://h/a basalt.network=e0":              "neither dhcp",
		"basalt.answers=http://h/a basalt.network=e0,1.2.3":        "not an address",
		"basalt.answers=http://h/a basalt.network=e0,1.2.3.4/24,x": "not an address",
	} {
		if _, err := FromCommandLine(line); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("FromCommandLine(%s) = %v, want an error with %q", line, err, says)
		}
	}
}

func FuzzFromCommandLine(f *testing.F) {
	f.Add("basalt.answers=CFG:node1.yaml")
	f.Add("basalt.answers=http://h/a basalt.network=e0,1.2.3.4/24,x")
	f.Fuzz(func(t *testing.T, line string) {
		s, err := FromCommandLine(line)
		if err == nil && s.URL == "" && (!strings.HasPrefix(s.Device, "/dev/") || strings.Contains(s.Device, "/../") || strings.HasPrefix(s.Path, "/") || s.Path == "") {
			t.Fatalf("source = %+v, want a path that stays below /dev", s)
		}
	})
}

func TestFetch(t *testing.T) {
	var tries int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries++
		if r.URL.Path == "/large" {
			_, _ = w.Write(make([]byte, strictyaml.MaxBytes+1))
			return
		}
		_, _ = w.Write([]byte("disk: only\n"))
	}))
	defer srv.Close()
	if data, err := Read(context.Background(), Source{URL: srv.URL + "/a"}, ""); err != nil || string(data) != "disk: only\n" {
		t.Errorf("Read by HTTP = %q, %v; want the file", data, err)
	}
	if _, err := Read(context.Background(), Source{URL: srv.URL + "/large"}, ""); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Error(err)
	}
}

func TestNoMedium(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	gone := Source{Device: filepath.Join(t.TempDir(), "none"), Path: "x"}
	if _, err := Read(ctx, gone, t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	gone.Named = true
	if _, err := Read(ctx, gone, t.TempDir()); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "cannot be read") {
		t.Error(err)
	}
}

func TestLinksStayInTheMedium(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "answers.yaml"), []byte("x"), 0o600), os.Symlink("/etc/hostname", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if data, err := readIn(dir, "answers.yaml"); err != nil || string(data) != "x" {
		t.Errorf("readIn = %q, %v; want x", data, err)
	}
	if _, err := readIn(dir, "link"); err == nil {
		t.Error("readIn follows a link out of the medium, want an error")
	}
}
