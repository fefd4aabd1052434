package luks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const passphrase = "0f2ad6b1c9e84c3f9d6ba1e2f3041526"

// disk creates a disk of a header and one MiB, and the files of two
// passphrases.
func disk(t *testing.T) (disk, right, wrong string) {
	t.Helper()
	header, err := Header([]byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	if len(header) != HeaderBytes {
		t.Errorf("the header has %d bytes, want %d", len(header), HeaderBytes)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"disk": append(header, make([]byte, 1<<20)...), "right": []byte(passphrase), "wrong": []byte(strings.ToUpper(passphrase)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "disk"), filepath.Join(dir, "right"), filepath.Join(dir, "wrong")
}

func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("host: " + program + " is not installed: installer/dev/setup.sh installs it")
	}
}

// TestQEMUOpens checks that QEMU opens the disk with its passphrase, writes
// and reads it, and fails with another passphrase.
func TestQEMUOpens(t *testing.T) {
	need(t, "qemu-io")
	disk, right, wrong := disk(t)
	io := func(key string, commands ...string) (string, error) {
		args := []string{"--object", "secret,id=luks,file=" + key, "--image-opts", "driver=luks,key-secret=luks,file.driver=file,file.filename=" + disk}
		for _, c := range commands {
			args = append(args, "-c", c)
		}
		out, err := exec.Command("qemu-io", args...).CombinedOutput()
		return string(out), err
	}
	if out, err := io(right, "write -P 0x11 1044480 4096", "length"); err != nil || !strings.Contains(out, "1 MiB") {
		t.Errorf("write with the passphrase: %v: %s", err, out)
	}
	if out, err := io(right, "read -P 0x11 1044480 4096"); err != nil || strings.Contains(out, "failed") {
		t.Errorf("read with the passphrase: %v: %s", err, out)
	}
	if out, err := io(wrong, "length"); err == nil || !strings.Contains(out, "Invalid password") {
		t.Errorf("open with another passphrase = %v, want an invalid password: %s", err, out)
	}
	raw, err := os.ReadFile(disk)
	if err != nil || bytes.Contains(raw, bytes.Repeat([]byte{0x11}, 16)) {
		t.Errorf("the disk contains the written data unencrypted, or cannot be read: %v", err)
	}
}

// TestHeadersDiffer checks that two headers of one passphrase have no key
// material in common.
func TestHeadersDiffer(t *testing.T) {
	one, err := Header([]byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	two, err := Header([]byte(passphrase))
	if err != nil {
		t.Fatal(err)
	}
	for from := slotStart * sector; from < (slotStart+slotSectors)*sector; from += sector {
		if bytes.Equal(one[from:from+sector], two[from:from+sector]) && from < slotStart*sector+keyBytes*stripes {
			t.Fatalf("sector %d is the same in both headers, want different key material", from/sector)
		}
	}
}

// TestQCOW2 checks that QEMU accepts an encrypted qcow2 file as intact, with
// and without a backing file, for any size.
func TestQCOW2(t *testing.T) {
	need(t, "qemu-io")
	need(t, "qemu-img")
	dir := t.TempDir()
	run := func(program string, args ...string) (string, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for key, content := range map[string]string{"right": passphrase, "wrong": strings.ToUpper(passphrase)} {
		if err := os.WriteFile(filepath.Join(dir, key), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	below := strings.Repeat("x", 1000) // QEMU takes 1,023 bytes at most
	for name, args := range map[string][]string{
		"alone": {"64M"}, "large": {"50T"}, "over": {"-u", "-F", "qcow2", "-b", below, "64M"},
	} {
		create := append([]string{"create", "-q", "-f", "qcow2", name}, args...)
		if out, err := run("qemu-img", create...); err != nil {
			t.Fatalf("qemu-img create %s: %v: %s", name, err, out)
		}
		if err := EncryptQCOW2(filepath.Join(dir, name), []byte(passphrase)); err != nil {
			t.Fatalf("EncryptQCOW2 %s: %v", name, err)
		}
		if err := EncryptQCOW2(filepath.Join(dir, name), []byte(passphrase)); err == nil {
			t.Errorf("second EncryptQCOW2 of %s = nil, want an error", name)
		}
		image := `json:{"driver": "qcow2", "backing": null, "encrypt": {"format": "luks", "key-secret": "luks"}, "file": {"driver": "file", "filename": "` + name + `"}}`
		open := func(key string, args ...string) (string, error) {
			return run("qemu-io", append(args, "--object", "secret,id=luks,file="+key, image)...)
		}
		if out, err := open("right", "-c", "write -P 0x11 1M 128k"); err != nil {
			t.Errorf("write to %s: %v: %s", name, err, out)
		}
		if out, err := open("right", "-c", "read -P 0x11 1M 128k", "-c", "read -P 0 2M 64k"); err != nil || strings.Contains(out, "failed") {
			t.Errorf("read %s: %v: %s", name, err, out)
		}
		if out, err := open("wrong", "-c", "read 1M 64k"); err == nil || !strings.Contains(out, "Invalid password") {
			t.Errorf("read %s with another passphrase = %v, want an invalid password: %s", name, err, out)
		}
		if out, err := run("qemu-img", "check", "--object", "secret,id=luks,file=right", image); err != nil || !strings.Contains(out, "No errors were found") {
			t.Errorf("qemu-img check %s: %v: %s", name, err, out)
		}
		if out, err := run("qemu-img", "info", name); name == "over" && (err != nil || !strings.Contains(out, below)) {
			t.Errorf("qemu-img info %s: %v, want backing file %s: %s", name, err, below, out)
		}
	}
}
