// Package cgroup creates a control group for each vGPU. It limits the host
// memory, processes and processor time of the vGPU's workers to what the instance
// pays for; when that is not enough, the kernel ends one of these workers and no
// other process.
//
// Version 2 needs a delegated group (systemd.resource-control(5), Delegate= and
// DelegateSubgroup=): its processes are in a leaf, and the groups of the vGPUs
// are created beside it. Version 1 needs the controllers memory, pids and cpu,
// and permission to create groups in them.
package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits are those of one vGPU: of its basalt-vgpu and all its workers together.
type Limits struct {
	MemoryBytes int64
	PIDs        int64 // processes and threads
	MilliCPUs   int64 // thousandths of a processor's time
}

// Groups creates and removes the groups of a node's vGPUs. Its methods may be
// called from any goroutine, but for one ID by one caller at a time.
type Groups struct {
	v2 bool
	// parents maps each controller to the folder that contains the groups of the
	// vGPUs: one entry with version 2, one for each controller with version 1.
	parents map[string]string
}

const (
	leaf   = "basaltd"     // version 2: DelegateSubgroup of the unit
	folder = "basalt-vgpu" // the folder of the groups of the vGPUs

	period = 100_000 // microseconds over which a quota of processor time is applied
)

var controllers = []string{"memory", "pids", "cpu"}

var validID = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

// Open determines where this process may create groups, and prepares that folder.
// The error names what is missing.
func Open() (*Groups, error) { return open("/proc/self/cgroup", "/proc/self/mountinfo") }

func open(cgroups, mountinfo string) (*Groups, error) {
	own, err := membership(cgroups)
	if err != nil {
		return nil, err
	}
	v2, v1, err := mounts(mountinfo)
	if err != nil {
		return nil, err
	}
	if path, ok := own[""]; ok && v2 != "" && offers(base(v2, path)) {
		return openV2(v2, path)
	}
	g := &Groups{parents: map[string]string{}}
	for _, c := range controllers {
		at, path := v1[c], own[c]
		if at == "" || path == "" {
			return nil, fmt.Errorf("control groups: controller %q is not available, neither in version 2 nor in version 1", c)
		}
		g.parents[c] = filepath.Join(at, path, folder)
		if err := os.MkdirAll(g.parents[c], 0o755); err != nil {
			return nil, fmt.Errorf("control groups, version 1: %w", err)
		}
	}
	return g, nil
}

// membership returns the group of this process in each hierarchy, by controller;
// "" is the key of version 2.
func membership(path string) (map[string]string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	own := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			own[c] = parts[2]
		}
	}
	return own, nil
}

// mounts returns where the hierarchies are mounted (proc_pid_mountinfo(5)).
func mounts(path string) (v2 string, v1 map[string]string, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", nil, fmt.Errorf("control groups: %w", err)
	}
	v1 = map[string]string{}
	for line := range strings.Lines(string(raw)) {
		before, after, found := strings.Cut(line, " - ")
		at, fs := strings.Fields(before), strings.Fields(after)
		if !found || len(at) < 5 || len(fs) < 3 {
			continue
		}
		switch fs[0] {
		case "cgroup2":
			v2 = at[4]
		case "cgroup":
			for o := range strings.SplitSeq(fs[2], ",") {
				v1[o] = at[4]
			}
		}
	}
	return v2, v1, nil
}

// offers reports whether version 2 has the needed controllers in dir.
func offers(dir string) bool {
	have := words(filepath.Join(dir, "cgroup.controllers"))
	for _, c := range controllers {
		if !slices.Contains(have, c) {
			return false
		}
	}
	return true
}

func words(path string) []string {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(raw))
}

// base returns the folder in which a process of the group path creates other
// groups: the parent of its leaf. The parent has no controllers until its own
// parent enables them for it.
func base(mount, path string) string {
	own := filepath.Join(mount, path)
	if filepath.Base(own) == leaf {
		return filepath.Dir(own)
	}
	return own
}

func openV2(mount, path string) (*Groups, error) {
	base := base(mount, path)
	if base != filepath.Clean(mount) { // the root may have processes as well as groups
		// Without a subgroup of its own, systemd could not start the unit again:
		// a group with groups below it cannot have processes.
		if base == filepath.Join(mount, path) || !delegated(base) {
			return nil, fmt.Errorf("control group %s is not delegated to this process: its unit needs Delegate=cpu memory pids and DelegateSubgroup=%s (systemd 254 or newer)", path, leaf)
		}
		if err := vacate(base); err != nil {
			return nil, err
		}
	}
	all := "+" + strings.Join(controllers, " +")
	parent := filepath.Join(base, folder)
	if err := write(base, "cgroup.subtree_control", all); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, fmt.Errorf("control groups: %w", err)
	}
	if err := write(parent, "cgroup.subtree_control", all); err != nil {
		return nil, err
	}
	return &Groups{v2: true, parents: map[string]string{"": parent}}, nil
}

// delegated reports whether systemd has delegated the group: it sets an extended
// attribute then.
func delegated(dir string) bool {
	for _, name := range []string{"trusted.delegate", "user.delegate"} {
		var value [8]byte
		if n, err := unix.Getxattr(dir, name, value[:]); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// vacate moves processes that are in the group itself into the leaf: an earlier
// basaltd may have left them there. In version 2, a group whose controllers are
// enabled for its children cannot have processes.
func vacate(base string) error {
	to := filepath.Join(base, leaf)
	const rounds = 10 // processes may start others in the meantime
	for range rounds {
		pids := words(filepath.Join(base, "cgroup.procs"))
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := write(to, "cgroup.procs", pid); err != nil && !errors.Is(err, unix.ESRCH) {
				return err
			}
		}
	}
	return fmt.Errorf("control group %s: new processes are started faster than they can be moved out", base)
}

// Ensure creates the vGPU's group if needed and sets these limits. It returns the
// folders that a process joins with Join.
func (g *Groups) Ensure(id string, l Limits) ([]string, error) {
	if !validID.MatchString(id) {
		return nil, fmt.Errorf("%q is not a valid vGPU ID, want up to 64 of a-z, 0-9 and dash", id)
	}
	var dirs []string
	for _, parent := range g.parents {
		dir := filepath.Join(parent, id)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("set up control group of vGPU %s: %w", id, err)
		}
		dirs = append(dirs, dir)
	}
	for _, s := range g.settings(l) {
		dir := filepath.Join(g.parent(s.controller), id)
		err := write(dir, s.file, s.value)
		if s.optional && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(dirs)
	return dirs, nil
}

type setting struct {
	controller, file, value string
	optional                bool // not every kernel supports it
}

// settings returns the files of cgroups(7) and Documentation/admin-guide/cgroup-v2.rst
// to write for these limits.
func (g *Groups) settings(l Limits) []setting {
	// The weight of a group with as many processes, for when other groups want
	// processor time as well.
	share := max(l.MilliCPUs, 10)
	memory, pids, quota := strconv.FormatInt(l.MemoryBytes, 10), strconv.FormatInt(l.PIDs, 10), strconv.FormatInt(l.MilliCPUs*period/1000, 10)
	if g.v2 {
		return []setting{
			{"", "memory.max", memory, false}, {"", "memory.swap.max", "0", true}, {"", "pids.max", pids, false},
			{"", "cpu.max", quota + " " + strconv.Itoa(period), false}, {"", "cpu.weight", strconv.FormatInt(min(share/10, 10_000), 10), false},
		}
	}
	return []setting{
		{"memory", "memory.limit_in_bytes", memory, false}, {"pids", "pids.max", pids, false},
		{"cpu", "cpu.cfs_period_us", strconv.Itoa(period), false}, {"cpu", "cpu.cfs_quota_us", quota, false},
		{"cpu", "cpu.shares", strconv.FormatInt(min(share*1024/1000, 262_144), 10), false},
	}
}

func (g *Groups) parent(controller string) string {
	if g.v2 {
		return g.parents[""]
	}
	return g.parents[controller]
}

// Remove removes the vGPU's group, whose processes must have ended; it fails with
// EBUSY while some are still ending. It does nothing if the group does not exist.
func (g *Groups) Remove(id string) error {
	if !validID.MatchString(id) {
		return nil // never created
	}
	var errs []error
	for _, parent := range g.parents {
		if err := unix.Rmdir(filepath.Join(parent, id)); err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("set up control group of vGPU %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

// Join moves this process, with all its threads, into the groups of those
// folders. Processes that it starts later are in them too.
func Join(dirs []string) error {
	for _, dir := range dirs {
		if err := write(dir, "cgroup.procs", "0"); err != nil {
			return err
		}
	}
	return nil
}

func write(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("control groups: %w", err)
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("control groups: write %q: %w", value, err)
	}
	return nil
}
