package local

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// checkMount returns an error for a mount with local locks: two nodes could
// both hold an exclusive lock. If it cannot determine the mount, it returns
// nil.
func checkMount(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil // openPool returns the error
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	fs, options := mountOf(f, real)
	if why := localLocks(fs, options); why != "" {
		return api.Errorf(api.CodeInvalid, "file locks in %s are not shared with other nodes: %s, %s", dir, fs, why).
			WithHint("mount it as NFS version 4 without nolock and local_lock")
	}
	return nil
}

// localLocks returns the option that makes locks local to this node; empty:
// none. See nfs(5).
func localLocks(fs string, options []string) string {
	if fs != "nfs" && fs != "nfs4" {
		return ""
	}
	for _, o := range []string{"nolock", "local_lock=all", "local_lock=posix"} {
		if slices.Contains(options, o) {
			return o
		}
	}
	return ""
}

// mountOf returns the type and the options of the file system that contains
// dir. The format is that of proc_pid_mountinfo(5).
func mountOf(mountinfo io.Reader, dir string) (fs string, options []string) {
	best := -1
	for lines := bufio.NewScanner(mountinfo); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(rest) < 3 {
			continue
		}
		point := strings.TrimSuffix(unescape(fields[4]), "/")
		// The later of two mounts on one mount point hides the other.
		if len(point) >= best && (dir == point || strings.HasPrefix(dir, point+"/")) {
			best, fs, options = len(point), rest[0], strings.Split(rest[2], ",")
		}
	}
	return fs, options
}

// unescape decodes the kernel's octal escapes, such as \040 for a space.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
