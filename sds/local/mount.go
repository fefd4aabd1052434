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

// checkMount refuses a mount whose locks stay on this host: two nodes would
// each hold the lock that only one may have. What cannot be found out passes.
func checkMount(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil // openPool says what is wrong
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

// localLocks is the option that keeps locks on this host; empty: none is known
// to. See nfs(5).
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

// mountOf says of which type the file system is that dir lies in, and its
// options. The format is that of proc_pid_mountinfo(5).
func mountOf(mountinfo io.Reader, dir string) (fs string, options []string) {
	best := -1
	for lines := bufio.NewScanner(mountinfo); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(rest) < 3 {
			continue
		}
		point := strings.TrimSuffix(unescape(fields[4]), "/")
		// The later of two mounts on one point hides the other.
		if len(point) >= best && (dir == point || strings.HasPrefix(dir, point+"/")) {
			best, fs, options = len(point), rest[0], strings.Split(rest[2], ",")
		}
	}
	return fs, options
}

// unescape undoes the kernel's \040 for spaces and the like.
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
