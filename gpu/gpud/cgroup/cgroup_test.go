package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
)

// TestMain runs the tests. The test binary also serves as a process in a group,
// which allocates memory on command, page by page.
func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != "member" {
		os.Exit(m.Run())
	}
	if err := Join(os.Args[3:]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	v := OOMScoreUsual
	if os.Args[2] == "first" {
		v = OOMScoreFirst
	}
	if err := SetOOMScore(v); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("joined")
	var n int
	_, _ = fmt.Scan(&n)
	b := make([]byte, n)
	for i := 0; i < n; i += 4096 {
		b[i] = 1
	}
	fmt.Println("took", len(b))
	_, _ = fmt.Scan(&n)
	os.Exit(0)
}

// member starts a process in the groups dirs and returns when it has joined them.
func member(t *testing.T, victim string, dirs []string) (take func(n int) string, pid int, ended chan error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", append([]string{"member", victim}, dirs...)...)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	line := func() string {
		var b [200]byte
		n, _ := out.Read(b[:])
		return strings.TrimSpace(string(b[:n]))
	}
	if said := line(); said != "joined" {
		t.Fatalf("process in %v wrote %q, want joined", dirs, said)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	go func() { ended <- cmd.Wait(); close(done) }()
	return func(n int) string {
		_, _ = fmt.Fprintln(in, n)
		return line()
	}, cmd.Process.Pid, ended
}

// groups returns the groups of this machine; it skips the test where control
// groups are not available.
func groups(t *testing.T) *Groups {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("host: control groups need root")
	}
	g, err := Open()
	if err != nil {
		t.Skipf("host: %v", err)
	}
	return g
}

// A process that exceeds the memory limit of its group is ended, and only that
// one: the worker that has set OOMScoreFirst for itself, and not the group's
// keeper, however much memory that one has.
func TestOutOfMemoryKillsOneProcess(t *testing.T) {
	g := groups(t)
	id := fmt.Sprintf("test-%d", os.Getpid())
	dirs, err := g.Ensure(id, Limits{MemoryBytes: 160 << 20, PIDs: 100, MilliCPUs: 1500})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patience.Until(t, 20*time.Second, "the group goes", func() bool { return g.Remove(id) == nil })
		for _, dir := range dirs {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("folder %s still exists after Remove", dir)
			}
		}
	})
	keeper, keeperPID, keeperEnded := member(t, "usual", dirs)
	if got := keeper(80 << 20); !strings.HasPrefix(got, "took") {
		t.Fatalf("keeper answered %q to an allocation within the limit, want took", got)
	}
	other, _, otherEnded := member(t, "first", dirs)
	if got := other(8 << 20); !strings.HasPrefix(got, "took") {
		t.Fatalf("other worker answered %q to an allocation within the limit, want took", got)
	}
	greedy, _, greedyEnded := member(t, "first", dirs)
	if got := greedy(512 << 20); got != "" {
		t.Errorf("worker answered %q to an allocation over the limit, want that it was killed", got)
	}
	err = patience.Receive(t, 20*time.Second, "the greedy one ends", greedyEnded)
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("error of the worker that exceeded the limit = %v, want killed", err)
	}
	for name, ended := range map[string]chan error{"keeper": keeperEnded, "other worker": otherEnded} {
		select {
		case err := <-ended:
			t.Errorf("%s has ended: %v, want it to run on", name, err)
		default:
		}
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", keeperPID))
	if err != nil || !strings.Contains(string(raw), folder+"/"+id) {
		t.Errorf("groups of the keeper = %s, %v, want %s among them", raw, err, folder+"/"+id)
	}
}

// Limits apply to processes that already run, and to the number of threads.
func TestPIDs(t *testing.T) {
	g := groups(t)
	id := fmt.Sprintf("pids-%d", os.Getpid())
	dirs, err := g.Ensure(id, Limits{MemoryBytes: 64 << 20, PIDs: 3, MilliCPUs: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		patience.Until(t, 20*time.Second, "the group goes", func() bool { return g.Remove(id) == nil })
	})
	script := `for d; do echo 0 >"$d/cgroup.procs" || exit 3; done; sleep 0 & sleep 0 & sleep 0 & sleep 0 & wait`
	out, err := exec.Command("sh", append([]string{"-c", script, "sh"}, dirs...)...).CombinedOutput()
	if err == nil || !strings.Contains(strings.ToLower(string(out)), "fork") {
		t.Errorf("four processes beside a shell in a group of three: %v, %s; want that fork fails", err, out)
	}
}

func TestBadIDs(t *testing.T) {
	g := &Groups{parents: map[string]string{"memory": t.TempDir()}}
	for _, id := range []string{"", "..", "a/b", "A", strings.Repeat("a", 65)} {
		if _, err := g.Ensure(id, Limits{}); err == nil {
			t.Errorf("Ensure accepted the ID %q", id)
		}
		if err := g.Remove(id); err != nil {
			t.Errorf("Remove(%q) = %v, want no error", id, err)
		}
	}
}

// A simulated hierarchy of version 2, without a kernel behind it: which values
// are written to which files, and what is refused.
func TestVersion2(t *testing.T) {
	root := t.TempDir()
	unit := filepath.Join(root, "system.slice/basaltd.service")
	for _, dir := range []string{unit, filepath.Join(unit, leaf), filepath.Join(unit, folder), filepath.Join(unit, folder, "ins-1")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"cgroup.procs", "cgroup.subtree_control", "memory.max", "pids.max", "cpu.max", "cpu.weight"} {
			put(t, filepath.Join(dir, file), "")
		}
		// A group has the controllers that its parent enables (cgroup.subtree_control):
		// none yet.
		put(t, filepath.Join(dir, "cgroup.controllers"), "\n")
	}
	put(t, filepath.Join(unit, "cgroup.controllers"), "cpuset cpu io memory pids\n")
	own, info := filepath.Join(root, "cgroup"), filepath.Join(root, "mountinfo")
	put(t, own, "0::/system.slice/basaltd.service/basaltd\n")
	put(t, info, "25 22 0:21 / "+root+" rw,nosuid shared:4 - cgroup2 cgroup2 rw\n")
	if _, err := open(own, info); err == nil || !strings.Contains(err.Error(), "/system.slice/basaltd.service/basaltd is not delegated") {
		t.Fatalf("open of a group that is not delegated = %v, want that it is not delegated", err)
	}
	if err := unix.Setxattr(unit, "user.delegate", []byte("1"), 0); err != nil {
		t.Skipf("host: extended attributes are not available in %s: %v", root, err)
	}
	g, err := open(own, info)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := g.Ensure("ins-1", Limits{MemoryBytes: 1 << 30, PIDs: 10, MilliCPUs: 2500})
	if err != nil {
		t.Fatal(err)
	}
	group := filepath.Join(unit, folder, "ins-1")
	if len(dirs) != 1 || dirs[0] != group {
		t.Errorf("folders to join = %v, want %s", dirs, group)
	}
	for path, want := range map[string]string{
		filepath.Join(unit, "cgroup.subtree_control"):         "+memory +pids +cpu",
		filepath.Join(unit, folder, "cgroup.subtree_control"): "+memory +pids +cpu",
		filepath.Join(group, "memory.max"):                    "1073741824",
		filepath.Join(group, "pids.max"):                      "10",
		filepath.Join(group, "cpu.max"):                       "250000 100000",
		filepath.Join(group, "cpu.weight"):                    "250",
	} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s = %q, %v; want %q", path, got, err, want)
		}
	}
	put(t, own, "0::/system.slice/basaltd.service\n")
	if _, err := open(own, info); err == nil || !strings.Contains(err.Error(), "DelegateSubgroup=basaltd") {
		t.Errorf("open in a unit without a subgroup = %v, want an error about DelegateSubgroup", err)
	}
	put(t, own, "1:name=systemd:/\n")
	if _, err := open(own, info); err == nil || !strings.Contains(err.Error(), `controller "memory" is not available`) {
		t.Errorf("open on a machine without controllers = %v, want that memory is not available", err)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
