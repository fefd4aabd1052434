// Package nfs mounts the directory that nodes share from an NFS server, so that it
// need not be entered into each node's fstab.
package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Export is an exported directory of an NFS server.
type Export struct{ Server, Path string }

// Source returns the export in the form that mount(8) takes.
func (e Export) Source() string {
	if strings.Contains(e.Server, ":") {
		return "[" + e.Server + "]:" + e.Path
	}
	return e.Server + ":" + e.Path
}

// Scheme is the prefix of the address of an export.
const Scheme = "nfs://"

const maxAddress = 255 // bytes

var (
	serverName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?$`)
	exportPath = regexp.MustCompile(`^/[A-Za-z0-9._/@+-]*$`)
)

// Parse parses nfs://SERVER/PATH, where SERVER is a name or an address. What it
// accepts is safe as an argument of mount(8).
func Parse(s string) (Export, error) {
	rest, ok := strings.CutPrefix(s, Scheme)
	server, dir, found := strings.Cut(rest, "/")
	dir = "/" + dir
	if inner, is := strings.CutPrefix(server, "["); is {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !closed || err != nil || !a.Is6() || a.Zone() != "" {
			return Export{}, invalid(s)
		}
		server = a.String()
	} else if !serverName.MatchString(server) {
		return Export{}, invalid(s)
	}
	if !ok || !found || len(s) > maxAddress || !exportPath.MatchString(dir) || path.Clean(dir) != dir {
		return Export{}, invalid(s)
	}
	return Export{server, dir}, nil
}

func invalid(s string) error {
	return api.Errorf(api.CodeInvalid, "%.80q is not an export of an NFS server", s).WithHint("write nfs://SERVER/PATH, such as nfs://192.0.2.9/srv/basalt")
}

// options are the options of the mount. NFS 4 has locks, which the pool needs; with
// hard a write waits for an unreachable server and is not lost.
const options = "vers=4,proto=tcp,hard,nosuid,nodev,noexec,retry=0"

// patience is the timeout of the mount.
const patience = time.Minute

// System is what is used of the machine; tests replace it.
type System struct {
	// Command runs a program.
	Command func(ctx context.Context, argv ...string) error
	// Mounts returns the text of /proc/self/mounts.
	Mounts func() (string, error)
	// Systemd is set if systemd is the first process. It is then told that guests
	// need the mount.
	Systemd bool
}

// Mount mounts the export at a directory, unless it is mounted there already, as
// after a restart.
func Mount(ctx context.Context, s System, e Export, dir string) error {
	text, err := s.Mounts()
	if err != nil {
		return err
	}
	switch has := mounted(text, dir); has {
	case e.Source():
		return nil
	case "":
	default:
		return fmt.Errorf("%s has %s mounted, want %s: shut the node's guests down (systemctl stop basalt-guests), then umount %s", dir, has, e.Source(), dir)
	}
	if err := os.MkdirAll(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Command(ctx, command(s.Systemd, e, dir)...); err != nil {
		return fmt.Errorf("mount %s: %w", e.Source(), err)
	}
	return nil
}

// command returns the command that mounts the export. With systemd it is ordered
// before the guests' unit, so that guests are stopped before it is unmounted.
func command(systemd bool, e Export, dir string) []string {
	if !systemd {
		return []string{"mount", "-t", "nfs4", "-o", options, "--", e.Source(), dir}
	}
	return []string{"systemd-mount", "--quiet", "--collect", "--type=nfs4", "--options=" + options, "--description=Basalt's shared storage",
		"--property=Before=basalt-guests.service", "--", e.Source(), dir}
}

// unescape reverses the kernel's escaping of blanks in /proc/self/mounts (proc(5)).
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// mounted returns the source of what is mounted last at a directory, or "".
func mounted(text, dir string) (source string) {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 2 && unescape.Replace(f[1]) == dir {
			source = unescape.Replace(f[0])
		}
	}
	return source
}
