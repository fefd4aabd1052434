package release_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/release"
)

// repository creates what the build writes to a medium: a repository listed by
// dpkg-scanpackages and signed by gpg.
func repository(t *testing.T, version string) (dir string, keys openpgp.EntityList) {
	t.Helper()
	dir = t.TempDir()
	var debs []string
	for _, name := range []string{"basalt", "basalt-guest-tools"} {
		debs = append(debs, deb(t, name, version))
	}
	key := filepath.Join(t.TempDir(), "key.asc")
	command(t, "../../installer/iso/repository.sh", append([]string{key, filepath.Join(dir, release.Folder)}, debs...)...)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file of the secret key: %v, %v; want mode 0600", info, err)
	}
	return dir, keysOf(t, key+".pub")
}

func keysOf(t *testing.T, path string) openpgp.EntityList {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	keys, err := release.Keys(f)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// deb creates an empty package.
func deb(t *testing.T, name, version string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	if err := os.MkdirAll(filepath.Join(root, "DEBIAN"), 0o755); err != nil {
		t.Fatal(err)
	}
	control := "Package: " + name + "\nVersion: " + version + "\nArchitecture: amd64\nMaintainer: T <t@localhost>\nDescription: test\n of a repository\n"
	if err := os.WriteFile(filepath.Join(root, "DEBIAN", "control"), []byte(control), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), name+"_"+version+"_amd64.deb")
	command(t, "dpkg-deb", "--root-owner-group", "--build", root, out)
	return out
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func TestRead(t *testing.T) {
	t.Parallel()
	dir, keys := repository(t, "1.0~rc1+5.gabcdef")
	r, err := release.Read(os.DirFS(dir), keys)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Find("basalt-guest-tools")
	if err != nil || p.Version != "1.0~rc1+5.gabcdef" || p.Path != "packages/basalt-guest-tools_1.0~rc1+5.gabcdef_amd64.deb" {
		t.Errorf("Find(basalt-guest-tools) = %+v, %v; want version 1.0~rc1+5.gabcdef with its path", p, err)
	}
	if len(r.Packages) != 2 || len(r.Signer) != 40 || time.Since(r.At).Abs() > 24*time.Hour {
		t.Errorf("release = %+v, want 2 packages, a fingerprint of 40 digits and the current time", r)
	}
	if _, err := r.Find("qemu"); err == nil {
		t.Error("Find of a missing package returned no error, want one")
	}
	apt(t, dir, keys)
}

// apt checks that this machine's apt accepts the repository with these keys, and
// rejects it with another key.
func apt(t *testing.T, dir string, keys openpgp.EntityList) {
	t.Helper()
	work := t.TempDir()
	_, others := repository(t, "1")
	for name, keys := range map[string]openpgp.EntityList{"own": keys, "other": others} {
		var b bytes.Buffer
		if err := keys[0].Serialize(&b); err != nil {
			t.Fatal(err)
		}
		key, list := filepath.Join(work, name+".gpg"), filepath.Join(work, name+".list")
		source := "deb [signed-by=" + key + "] file:" + dir + "/packages ./\n"
		if err := errors.Join(os.WriteFile(key, b.Bytes(), 0o644), os.WriteFile(list, []byte(source), 0o644), os.MkdirAll(filepath.Join(work, name, "lists/partial"), 0o755)); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("apt-get", "-q", "-o", "Dir::Etc::SourceList="+list, "-o", "Dir::Etc::SourceParts=/dev/null", "-o", "Dir::State="+filepath.Join(work, name),
			"-o", "Dir::State::status=/dev/null", "-o", "Dir::Cache="+filepath.Join(work, name), "-o", "APT::Sandbox::User=root", "-o", "APT::Update::Error-Mode=any", "update").CombinedOutput()
		if (err == nil) != (name == "own") {
			t.Errorf("apt with the %s key: %v\n%s", name, err, out)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	dir, keys := repository(t, "1.0")
	_, others := repository(t, "1.0")
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, "packages", name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	in, index := read("InRelease"), read("Packages")
	for name, c := range map[string]struct {
		keys      openpgp.EntityList
		in, index []byte
		want      string
	}{
		"another key":       {others, in, index, "not signed by a key that is trusted here"},
		"no key":            {nil, in, index, "not signed by a key that is trusted here"},
		"a changed release": {keys, bytes.Replace(in, []byte("Origin: Basalt"), []byte("Origin: Basall"), 1), index, "not signed by a key"},
		"text before":       {keys, append([]byte("SHA256:\n"), in...), index, "not signed, or only in part"},
		"text after":        {keys, append(bytes.Clone(in), "\nSHA256:\n"...), index, "not signed, or only in part"},
		"no signature":      {keys, []byte("Origin: Basalt\n"), index, "not signed"},
		"truncated":         {keys, in[:len(in)-40], index, "not signed"},
		"a changed index":   {keys, in, bytes.Replace(index, []byte("Version: 1.0"), []byte("Version: 0.9"), 1), "not the one that was signed"},
		"a truncated index": {keys, in, index[:100], "not the one that was signed"},
		"no index":          {keys, in, nil, "lacks its list of packages"},
		"too large":         {keys, bytes.Repeat([]byte("x"), 2<<20), index, "more than 1048576 bytes"},
	} {
		medium := fstest.MapFS{"packages/InRelease": {Data: c.in}}
		if c.index != nil {
			medium["packages/Packages"] = &fstest.MapFile{Data: c.index}
		}
		if _, err := release.Read(medium, c.keys); err == nil || !strings.Contains(err.Error(), c.want) || api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("%s: error = %v, want %s with %q", name, err, api.CodeInvalid, c.want)
		}
	}
	if _, err := release.Read(fstest.MapFS{}, keys); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of an empty medium = %v, want fs.ErrNotExist", err)
	}
	if _, err := release.Keys(strings.NewReader("nothing")); err == nil {
		t.Error("Keys of a file without a key returned no error, want one")
	}
}

// A signed index may still be invalid.
func TestReadBadIndex(t *testing.T) {
	t.Parallel()
	const good = "Package: basalt\nVersion: 1.0\nFilename: ./b.deb\nSize: 7\nSHA256: 0000000000000000000000000000000000000000000000000000000000000000\n"
	key := newKey(t)
	for name, text := range map[string]string{
		"a path that leaves":   strings.Replace(good, "./b.deb", "../b.deb", 1),
		"an absolute path":     strings.Replace(good, "./b.deb", "/b.deb", 1),
		"no size":              strings.Replace(good, "Size: 7\n", "", 1),
		"a negative size":      strings.Replace(good, "7", "-7", 1),
		"a sum that is none":   strings.Replace(good, "SHA256: 00", "SHA256: xx", 1),
		"an odd version":       strings.Replace(good, "1.0", "-1", 1),
		"a line without a :":   good + "nonsense\n",
		"too many of one name": good + "\n" + good,
	} {
		r, err := release.Read(signed(t, key, text), openpgp.EntityList{key})
		if err == nil {
			_, err = r.Find("basalt")
		}
		if api.CodeOf(err) != api.CodeInvalid {
			t.Errorf("%s: error = %v, want code %s", name, err, api.CodeInvalid)
		}
	}
}

func newKey(t testing.TB) *openpgp.Entity {
	t.Helper()
	key, err := openpgp.NewEntity("test", "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func FuzzRead(f *testing.F) {
	key := newKey(f)
	f.Add([]byte("Package: basalt\nVersion: 1.0\nFilename: ./b.deb\nSize: 7\nSHA256: " + strings.Repeat("0", 64) + "\n"))
	f.Fuzz(func(t *testing.T, index []byte) {
		r, err := release.Read(signed(t, key, string(index)), openpgp.EntityList{key})
		if err != nil {
			return
		}
		for _, p := range r.Packages {
			if !fs.ValidPath(p.Path) || !strings.HasPrefix(p.Path, "packages/") || !release.ValidVersion(p.Version) || p.SizeBytes < 1 {
				t.Errorf("Read returned an invalid package: %+v", p)
			}
		}
	})
}

func FuzzReadUnsigned(f *testing.F) {
	f.Add([]byte("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nx\n-----BEGIN PGP SIGNATURE-----\n\niHUE\n-----END PGP SIGNATURE-----\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if r, err := release.Read(fstest.MapFS{"packages/InRelease": {Data: in}}, nil); err == nil {
			t.Errorf("Read of a release without a trusted signature = %+v, want an error", r)
		}
		_, _ = release.Keys(bytes.NewReader(in))
	})
}
