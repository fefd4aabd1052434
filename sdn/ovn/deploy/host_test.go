package deploy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/node/supervisor"
)

func needHost(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs real daemons for some 60 s")
	}
	if os.Getuid() != 0 {
		t.Skip("host: namespaces require root")
	}
	for _, program := range []string{"/usr/sbin/ovsdb-server", "/usr/sbin/ovs-vswitchd", "/usr/bin/ovn-northd", "/usr/bin/ovn-controller", "/usr/bin/ovn-nbctl"} {
		if _, err := os.Stat(program); err != nil {
			t.Skip("host: " + program + " is not installed")
		}
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		t.Skip("host: /dev/net/tun does not exist")
	}
}

func command(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// removeLeftovers ends and removes what killed tests have left: daemons
// outlive the process that started them.
func removeLeftovers() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), "ovndep-*"))
	spaces, _ := filepath.Glob("/run/netns/od*-*")
	for _, path := range append(dirs, spaces...) {
		var pid int
		name := strings.TrimPrefix(strings.TrimPrefix(filepath.Base(path), "ovndep-"), "od")
		if _, err := fmt.Sscanf(name, "%d-", &pid); err != nil || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if slices.Contains(spaces, path) {
			_ = exec.Command("ip", "netns", "del", filepath.Base(path)).Run()
			continue
		}
		nodes, _ := filepath.Glob(path + "/*/daemons")
		for _, node := range nodes {
			if p, err := supervisor.NewProcesses(node, filepath.Join(filepath.Dir(node), "log")); err == nil {
				for _, name := range []string{"ovn-controller", "ovn-northd", "ovn-sb", "ovn-nb", "ovs-vswitchd", "ovs-db"} {
					_ = p.Stop(context.Background(), name)
				}
			}
		}
		_ = os.RemoveAll(path)
	}
}
