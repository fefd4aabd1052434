package local

import (
	"strings"
	"testing"
)

const mountinfo = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
40 22 0:40 / /srv/pool rw,relatime shared:9 - nfs4 nas:/pool rw,vers=4.2,local_lock=none,addr=192.0.2.1
41 22 0:41 / /srv/pool/old rw - nfs nas:/old rw,vers=3,nolock,local_lock=all
42 22 0:42 / /srv/my\040pool rw - nfs nas:/my rw,vers=3,local_lock=posix
43 22 0:43 / /srv/hidden rw - nfs nas:/x rw,local_lock=all
44 43 0:44 / /srv/hidden rw - ceph 192.0.2.1:/ rw
not a line
`

func TestLocksThatStayLocal(t *testing.T) {
	for dir, want := range map[string]struct{ fs, why string }{
		"/":                   {"ext4", ""},
		"/srv":                {"ext4", ""},
		"/srv/pool":           {"nfs4", ""},
		"/srv/pool/a/b":       {"nfs4", ""},
		"/srv/pools":          {"ext4", ""},
		"/srv/pool/old":       {"nfs", "nolock"},
		"/srv/my pool/basalt": {"nfs", "local_lock=posix"},
		"/srv/hidden":         {"ceph", ""},
	} {
		fs, options := mountOf(strings.NewReader(mountinfo), dir)
		if why := localLocks(fs, options); fs != want.fs || why != want.why {
			t.Errorf("file system of %s = %s with local locks %q, want %s and %q", dir, fs, why, want.fs, want.why)
		}
	}
	if err := checkMount(t.TempDir()); err != nil {
		t.Errorf("checkMount of a temporary directory: %v", err)
	}
}

func FuzzMountOf(f *testing.F) {
	f.Add(mountinfo, "/srv/pool")
	f.Add("1 2 3 4 \\04 6 - a b c", "/")
	f.Fuzz(func(_ *testing.T, text, dir string) { mountOf(strings.NewReader(text), dir) })
}
