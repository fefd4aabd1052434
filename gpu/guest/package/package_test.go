// Package tools tests the packages of the guest tools that build.sh builds. dpkg and rpm
// install, upgrade and remove them in a small system of their own.
package tools_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
)

const name = "basalt-vgpu-tools"

// disc returns the folder of the tools disc, with the libraries of all variants.
func disc(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("dpkg and rpm need root")
	}
	dir, _ := built.Guest(t)
	for _, v := range []string{"musl", "arm64"} {
		built.GuestVariant(t, v)
	}
	return dir
}

// build builds packages of a version and returns their folder.
func build(t *testing.T, version, archs, formats string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "packages")
	cmd := exec.Command("./build.sh")
	cmd.Env = append(os.Environ(), "BASALT_BUILD="+filepath.Dir(disc(t)), "VERSION="+version, "ARCHS="+archs, "FORMATS="+formats, "OUT="+out, "SOURCE_DATE_EPOCH=1700000000")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build.sh of %s: %v\n%s", version, err, text)
	}
	return out
}

// system is a machine that has only a shell and glibc. root is its root folder.
type system struct{ root string }

func newSystem(t *testing.T) system {
	t.Helper()
	s := system{t.TempDir()}
	s.shell(t, `
		mkdir -p "$R"/{bin,sbin,lib,lib64,etc/ld.so.conf.d,usr/lib,usr/local/bin,usr/share,opt,tmp,proc,sys,dev,var/lib/dpkg/{info,updates},var/lib/rpm}
		touch "$R/var/lib/dpkg/status" "$R/var/lib/dpkg/available"
		cp /bin/busybox "$R/bin/"
		chroot "$R" /bin/busybox --install /bin
		mknod -m 666 "$R/dev/null" c 1 3
		cp /sbin/ldconfig "$R/sbin/"
		for f in libc.so.6 libpthread.so.0 libdl.so.2; do cp -L /lib/x86_64-linux-gnu/$f "$R/lib/"; done
		cp -L /lib64/ld-linux-x86-64.so.2 "$R/lib64/"
		echo 'include /etc/ld.so.conf.d/*.conf' >"$R/etc/ld.so.conf"
		chroot "$R" /sbin/ldconfig`)
	return s
}

// shell runs a script with the system's root in R, and returns its output. The test fails
// if the script does.
func (s system) shell(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euc", script)
	cmd.Env = append(os.Environ(), "R="+s.root, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run %s: %v\n%s", script, err, out)
	}
	return string(out)
}

// files returns the paths of all files in the system that are not folders, and of the
// folders of the guest tools.
func (s system) files(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir(s.root, func(path string, e fs.DirEntry, err error) error {
		p := strings.TrimPrefix(path, s.root)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(p, "/var"), strings.HasPrefix(p, "/bin/"), p == "/etc/ld.so.cache":
		case !e.IsDir(), strings.Contains(p, "basalt"):
			all = append(all, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// check fails the test if the guest tools of a version are not installed and in use.
func (s system) check(t *testing.T, version string) {
	t.Helper()
	if got := s.shell(t, `cat "$R/etc/basalt-guest-tools-version"`); got != version+"\n" {
		t.Errorf("installed version = %q, want %q", got, version)
	}
	for what, want := range map[string]string{
		`chroot "$R" /sbin/ldconfig -p`:                      "/usr/lib/basalt/libcuda.so.1",
		`readlink "$R/usr/local/bin/nvidia-smi"`:             "/usr/lib/basalt/bin/nvidia-smi",
		`chroot "$R" /usr/local/bin/nvidia-smi 2>&1 || true`: "no Basalt vGPU was found",
		`cat "$R/etc/modules-load.d/basalt-vgpu.conf"`:       "virtio_gpu",
	} {
		if got := s.shell(t, what); !strings.Contains(got, want) {
			t.Errorf("%s printed %q, want %q in it", what, got, want)
		}
	}
}

// manager is a program that installs packages, and the commands for it.
type manager struct {
	format, file    string // file has the version as %s
	install, remove string
}

var managers = []manager{
	{format: "deb", file: name + "_%s_amd64.deb",
		install: `dpkg --root="$R" --force-depends --install %s`, remove: `dpkg --root="$R" --remove ` + name},
	{format: "rpm", file: name + "-%s-1.x86_64.rpm",
		install: `rpm --root="$R" --dbpath=/var/lib/rpm --force-debian --nodeps --replacefiles -U %s`, remove: `rpm --root="$R" --dbpath=/var/lib/rpm --force-debian --nodeps -e ` + name},
}

// add installs the package of a version in the folder packages.
func (m manager) add(t *testing.T, s system, packages, version string) {
	t.Helper()
	s.shell(t, fmt.Sprintf(m.install, filepath.Join(packages, fmt.Sprintf(m.file, version))))
}

func TestPackages(t *testing.T) {
	tools := disc(t)
	first, second := build(t, "1.0.0", "amd64 arm64", "deb rpm tar.xz"), build(t, "1.1.0", "amd64", "deb rpm")
	again := build(t, "1.0.0", "amd64", "deb rpm tar.xz")
	t.Run("same bytes", func(t *testing.T) { sameBytes(t, first, again) })
	t.Run("architectures", func(t *testing.T) { architectures(t, first) })
	for _, m := range managers {
		t.Run(m.format, func(t *testing.T) {
			s := newSystem(t)
			before := s.files(t)
			m.add(t, s, first, "1.0.0")
			s.check(t, "1.0.0")
			m.add(t, s, second, "1.1.0")
			s.check(t, "1.1.0")
			s.shell(t, m.remove)
			if left := s.files(t); !slices.Equal(left, before) {
				t.Errorf("files after the package's removal:\n%v\nwant\n%v", left, before)
			}
		})
		t.Run(m.format+" and install.sh", func(t *testing.T) { besideInstaller(t, m, tools, first) })
	}
	t.Run("tar", func(t *testing.T) {
		s := newSystem(t)
		before := s.files(t)
		script := `tar -C "$R/tmp" -xJf ` + first + `/` + name + `-1.0.0.tar.xz; DESTDIR="$R" sh "$R/tmp/` + name + `-1.0.0/install.sh" `
		s.shell(t, script+"; rm -r \"$R/tmp/\"*")
		s.check(t, "1.0.0")
		s.shell(t, script+"--remove; rm -r \"$R/tmp/\"*")
		if left := s.files(t); !slices.Equal(left, before) {
			t.Errorf("files after --remove:\n%v\nwant\n%v", left, before)
		}
	})
}

// besideInstaller tests that the package replaces what install.sh has installed, with the
// same files, and that install.sh then changes nothing.
func besideInstaller(t *testing.T, m manager, tools, packages string) {
	s := newSystem(t)
	before := s.files(t)
	installer := `DESTDIR="$R" sh ` + tools + `/install.sh`
	s.shell(t, installer)
	byInstaller := s.files(t)
	m.add(t, s, packages, "1.0.0")
	s.check(t, "1.0.0")
	byPackage := slices.DeleteFunc(s.files(t), func(f string) bool {
		return f == "/usr/lib/basalt/package" || strings.HasPrefix(f, "/usr/share/doc/"+name)
	})
	if !slices.Equal(byInstaller, byPackage) {
		t.Errorf("files of the package:\n%v\nwant those of install.sh:\n%v", byPackage, byInstaller)
	}
	if out := s.shell(t, installer); !strings.Contains(out, "the package "+name+" is installed, version 1.0.0: nothing is changed") {
		t.Errorf("install.sh on a system with the package printed %s, want that it changes nothing", out)
	}
	s.check(t, "1.0.0")
	s.shell(t, m.remove)
	if left := s.files(t); !slices.Equal(left, before) {
		t.Errorf("files after the package's removal:\n%v\nwant\n%v", left, before)
	}
}

// sameBytes tests that two builds of one version produce identical files.
func sameBytes(t *testing.T, first, again string) {
	files, err := filepath.Glob(filepath.Join(again, name+"*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("packages of the second build = %v (%v), want 3", files, err)
	}
	for _, f := range files {
		a, errA := os.ReadFile(f)
		b, errB := os.ReadFile(filepath.Join(first, filepath.Base(f)))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("SHA-256 of %s differs between two builds: %x and %x (errors %v, %v)", filepath.Base(f), sha256.Sum256(a), sha256.Sum256(b), errA, errB)
		}
	}
}

// architectures tests that each package names the architecture of its library.
func architectures(t *testing.T, packages string) {
	s := system{t.TempDir()}
	for file, want := range map[string][2]string{
		name + "_1.0.0_amd64.deb":     {"amd64", "Advanced Micro Devices X86-64"},
		name + "_1.0.0_arm64.deb":     {"arm64", "AArch64"},
		name + "-1.0.0-1.x86_64.rpm":  {"x86_64", "Advanced Micro Devices X86-64"},
		name + "-1.0.0-1.aarch64.rpm": {"aarch64", "AArch64"},
	} {
		path := filepath.Join(packages, file)
		says, unpack := `dpkg-deb -f `+path+` Architecture`, `dpkg-deb -x `+path+` "$R/`+file+`"`
		if strings.HasSuffix(file, ".rpm") {
			says, unpack = `rpm --qf '%{arch}\n' -qp `+path, `mkdir "$R/`+file+`"; cd "$R/`+file+`"; rpm2cpio `+path+` | cpio -idm --quiet --no-absolute-filenames`
		}
		if got := s.shell(t, says); got != want[0]+"\n" {
			t.Errorf("architecture of %s = %q, want %q", file, got, want[0])
		}
		s.shell(t, unpack)
		if got := s.shell(t, `readelf -h "$R/`+file+`/usr/lib/basalt/libcuda.so.1"`); !strings.Contains(got, want[1]) {
			t.Errorf("%s contains a library with the ELF header\n%s\nwant machine %s", file, got, want[1])
		}
	}
}
