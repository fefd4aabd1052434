package hardware

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// array is a RAID array of the kernel's md driver (Documentation/admin-guide/md.rst).
type array struct {
	name    string   // such as md127
	level   string   // such as raid1
	started bool     // a degraded array that nobody started has no data
	disks   int64    // that it was made with
	missing int64    // of them, or not yet complete
	action  string   // such as idle, resync, recover, check
	done    string   // progress of the action, such as "42 %"; empty: unknown
	members []string // that work, such as sda3
}

// arrays returns the RAID arrays that have redundancy.
func arrays(f fs.FS) (all []array) {
	for _, name := range names(f, "sys/block", "md") {
		dir := path.Join("sys/block", name, "md")
		a := array{name: name, level: line(f, dir, "level"), action: line(f, dir, "sync_action")}
		switch a.level {
		case "raid1", "raid4", "raid5", "raid6", "raid10":
		default:
			continue
		}
		state := line(f, dir, "array_state")
		a.started = state != "inactive" && state != "clear"
		a.disks, _ = number(f, dir, "raid_disks")
		a.missing, _ = number(f, dir, "degraded")
		var at, of int64
		if n, _ := fmt.Sscanf(line(f, dir, "sync_completed"), "%d / %d", &at, &of); n == 2 && of > 0 && at >= 0 && at <= of {
			a.done = fmt.Sprintf("%.0f %%", 100*float64(at)/float64(of))
		}
		for _, m := range names(f, dir, "dev-") {
			if strings.Contains(line(f, dir, m, "state"), "in_sync") {
				a.members = append(a.members, strings.TrimPrefix(m, "dev-"))
			}
		}
		all = append(all, a)
	}
	return all
}

// mirrors checks that every array has all of its disks.
func mirrors(f Facts) api.HardwareCheck {
	const (
		id     = api.HardwareMirror
		repair = "Replace the disk as docs/install.md says (basaltd mirror replace); basaltd mirror status says which one is missing."
	)
	var whole, degraded, rebuilding, stopped []string
	for _, a := range arrays(f.FS) {
		about := a.name
		if a.done != "" {
			about += " " + a.done
		}
		switch {
		case !a.started:
			stopped = append(stopped, a.name)
		case a.missing > 0 && a.action == "recover":
			rebuilding = append(rebuilding, about)
		case a.missing > 0:
			degraded = append(degraded, fmt.Sprintf("%s has %d of %d disks (%s)", a.name, a.disks-a.missing, a.disks, few(a.members)))
		case a.action == "resync":
			whole = append(whole, a.name+" is being copied for the first time "+a.done)
		default:
			whole = append(whole, a.name)
		}
	}
	switch {
	case len(degraded) > 0:
		return failed(id, few(degraded), "The failure of one more disk loses the node's data.", repair)
	case len(stopped) > 0:
		return warning(id, "not started: "+few(stopped), "An array that lacks disks was found, and nothing on it is in use.", "mdadm --examine on its disks says what it was; mdadm --stop removes it.")
	case len(rebuilding) > 0:
		return warning(id, "being copied to a new disk: "+few(rebuilding), "Until it is complete, the failure of the other disk loses the node's data.", "Wait; basaltd mirror status shows the progress.")
	case len(whole) > 0:
		return ok(id, "all disks: "+few(whole))
	}
	return ok(id, "no mirrored disks")
}
