// Package tools tests the packages of the guest tools, which build.sh makes: they are
// installed, upgraded and removed by dpkg and rpm in a small system of their own.
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

// disc is the folder of the tools' disc, with the libraries of all variants.
func disc(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("dpkg and rpm want root")
	}
	dir, _ := built.Guest(t)
	for _, v := range []string{"musl", "arm64"} {
		built.GuestVariant(t, v)
	}
	return dir
}

// build makes packages of a version and returns their folder.
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

// system is the root of a machine with a shell, glibc and no more.
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

// shell runs a script with the system's root in R.
func (s system) shell(t *testing.T, script string) string {
	t.Helper()
	cmd := exec.Command("bash", "-euc", script)
	cmd.Env = append(os.Environ(), "R="+s.root, "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

// files are the names of all that is in the system and no folder, and the folders that
// are the guest tools' own.
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

// works reports whether the machine has the guest tools of a version in use.
func (s system) works(t *testing.T, version string) {
	t.Helper()
	if got := s.shell(t, `cat "$R/etc/basalt-guest-tools-version"`); got != version+"\n" {
		t.Errorf("version %q, want %q", got, version)
	}
	for what, want := range map[string]string{
		`chroot "$R" /sbin/ldconfig -p`:                      "/usr/lib/basalt/libcuda.so.1",
		`readlink "$R/usr/local/bin/nvidia-smi"`:             "/usr/lib/basalt/bin/nvidia-smi",
		`chroot "$R" /usr/local/bin/nvidia-smi 2>&1 || true`: "no Basalt vGPU was found",
		`cat "$R/etc/modules-load.d/basalt-vgpu.conf"`:       "virtio_gpu",
	} {
		if got := s.shell(t, what); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", what, got, want)
		}
	}
}

// manager is what installs packages.
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

func (m manager) put(t *testing.T, s system, packages, version string) {
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
			m.put(t, s, first, "1.0.0")
			s.works(t, "1.0.0")
			m.put(t, s, second, "1.1.0")
			s.works(t, "1.1.0")
			s.shell(t, m.remove)
			if left := s.files(t); !slices.Equal(left, before) {
				t.Errorf("after its removal there is\n%v\nwant\n%v", left, before)
			}
		})
		t.Run(m.format+" and install.sh", func(t *testing.T) { besideInstaller(t, m, tools, first) })
	}
	t.Run("tar", func(t *testing.T) {
		s := newSystem(t)
		before := s.files(t)
		script := `tar -C "$R/tmp" -xJf ` + first + `/` + name + `-1.0.0.tar.xz; DESTDIR="$R" sh "$R/tmp/` + name + `-1.0.0/install.sh" `
		s.shell(t, script+"; rm -r \"$R/tmp/\"*")
		s.works(t, "1.0.0")
		s.shell(t, script+"--remove; rm -r \"$R/tmp/\"*")
		if left := s.files(t); !slices.Equal(left, before) {
			t.Errorf("after --remove there is\n%v\nwant\n%v", left, before)
		}
	})
}

// besideInstaller: the package takes over what install.sh has put there, which then
// changes nothing; both have the same files.
func besideInstaller(t *testing.T, m manager, tools, packages string) {
	s := newSystem(t)
	before := s.files(t)
	installer := `DESTDIR="$R" sh ` + tools + `/install.sh`
	s.shell(t, installer)
	byInstaller := s.files(t)
	m.put(t, s, packages, "1.0.0")
	s.works(t, "1.0.0")
	byPackage := slices.DeleteFunc(s.files(t), func(f string) bool {
		return f == "/usr/lib/basalt/package" || strings.HasPrefix(f, "/usr/share/doc/"+name)
	})
	if !slices.Equal(byInstaller, byPackage) {
		t.Errorf("install.sh puts\n%v\nthe package\n%v", byInstaller, byPackage)
	}
	if out := s.shell(t, installer); !strings.Contains(out, "the package "+name+" is installed, version 1.0.0: nothing is changed") {
		t.Errorf("install.sh over the package said %s", out)
	}
	s.works(t, "1.0.0")
	s.shell(t, m.remove)
	if left := s.files(t); !slices.Equal(left, before) {
		t.Errorf("after its removal there is\n%v\nwant\n%v", left, before)
	}
}

// sameBytes: two builds of one version give the same files.
func sameBytes(t *testing.T, first, again string) {
	files, err := filepath.Glob(filepath.Join(again, name+"*"))
	if err != nil || len(files) != 3 {
		t.Fatalf("packages: %v, %v, want 3", files, err)
	}
	for _, f := range files {
		a, errA := os.ReadFile(f)
		b, errB := os.ReadFile(filepath.Join(first, filepath.Base(f)))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: %x and %x, %v, %v", filepath.Base(f), sha256.Sum256(a), sha256.Sum256(b), errA, errB)
		}
	}
}

// architectures: each package says what its library is for.
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
			t.Errorf("%s is for %q, want %q", file, got, want[0])
		}
		s.shell(t, unpack)
		if got := s.shell(t, `readelf -h "$R/`+file+`/usr/lib/basalt/libcuda.so.1"`); !strings.Contains(got, want[1]) {
			t.Errorf("%s has a library for\n%s", file, got)
		}
	}
}
