package deploy

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Level is the severity of a health status.
type Level string

// Levels.
const (
	OK      Level = "OK"
	Warning Level = "Warning"
	Error   Level = "Error"
)

// Health is the cluster's health in words for operators.
type Health struct {
	Level   Level
	Summary string
	// Next is what to do next; empty: nothing.
	Next   string
	Checks []Check // the most urgent first
}

// Check is a health check that Ceph reports.
type Check struct {
	Code    string // Ceph's name, as in its manual
	Level   Level
	Summary string
	Details []string // at most maxDetails
}

const (
	maxDetails   = 8
	maxChecks    = 32
	maxText      = 300
	maxHealthLen = 4 << 20
)

// Health queries the mons.
func (n Node) Health(ctx context.Context) (Health, error) {
	raw, err := n.ceph(ctx, "health detail\n")
	if err != nil {
		return Health{Level: Error, Summary: "the monitors are not reachable", Next: "check that the voting nodes are running and can reach each other"}, err
	}
	return Explain(raw)
}

// explanation is the explanation of a check, and what to do; %s is Ceph's own
// message.
type explanation struct{ code, says, next string }

// explanations are in the order in which problems should be solved. Checks
// that are not listed have Ceph's own message.
var explanations = []explanation{
	{"OSD_FULL", "a disk is full, writes are blocked", "add a disk, or delete volumes, snapshots and images"},
	{"POOL_FULL", "a pool is full, writes are blocked", "add a disk, delete volumes, snapshots and images, or raise the pool's quota"},
	{"MON_DISK_CRIT", "a monitor's file system is nearly full", "free space on the file system of /var/lib/basalt on that node"},
	{"MON_DOWN", "the monitor of a voting node is down", "check that the node is running and can reach the others"},
	{"PG_AVAILABILITY", "some data is not available", "restore the disks and nodes that are down"},
	{"OBJECT_UNFOUND", "some data is only on disks that are down", "restore the disks and nodes that are down; do not erase any of them"},
	{"PG_DAMAGED", "copies of some data differ", "find the faulty disk in the details, and run: ceph pg repair PG"},
	{"OSD_SCRUB_ERRORS", "scrubbing found copies that differ", "find the faulty disk in the details, and replace it if this happens again"},
	{"OSD_HOST_DOWN", "a node with disks is down", "restore the node, or remove it from the cluster"},
	{"OSD_DOWN", "a disk is down", "check whether the disk still works; if it does not, replace it"},
	{"BLUESTORE_SPURIOUS_READ_ERRORS", "a disk reports read errors", "replace the disk"},
	{"DEVICE_HEALTH", "a disk predicts its failure", "replace the disk"},
	{"OSD_BACKFILLFULL", "a disk is too full to receive data", "add a disk"},
	{"OSD_NEARFULL", "a disk is nearly full", "add a disk, or delete volumes, snapshots and images"},
	{"POOL_NEARFULL", "a pool is nearly full", "add a disk, or delete volumes, snapshots and images"},
	{"POOL_BACKFILLFULL", "a pool is too full to rebalance data", "add a disk"},
	{"MON_DISK_LOW", "a monitor's file system is filling up", "free space on the file system of /var/lib/basalt on that node"},
	{"MGR_DOWN", "no manager is running: statistics are not updated", "check that basaltd is running on the voting nodes"},
	{"MON_CLOCK_SKEW", "the nodes' clocks differ", "configure the same time server on all nodes"},
	{"MGR_MODULE_ERROR", "a module of the manager has failed", "find the cause: ceph health detail; then restart basaltd on the node with the manager"},
	{"TOO_FEW_OSDS", "there are fewer disks than replicas", "add a disk"},
	{"POOL_NO_REDUNDANCY", "a pool has only one replica", "set the replicas to 3, or at least 2"},
	{"OSDMAP_FLAGS", "a cluster flag disables a function", "see the details, and run: ceph osd unset FLAG"},
	{"SLOW_OPS", "some reads or writes take very long", "look for a faulty disk or cable in the details"},
	{"OSD_SLOW_PING_TIME_BACK", "responses between nodes are slow", "check the cables and switches of the storage network, and the nodes' load"},
	{"OSD_SLOW_PING_TIME_FRONT", "responses between nodes are slow", "check the cables and switches of the storage network, and the nodes' load"},
	{"PG_DEGRADED", "some data has too few replicas", "wait: the replicas are being created"},
	{"OBJECT_MISPLACED", "some data is being moved to another disk", "wait until it is finished"},
	{"PG_NOT_SCRUBBED", "some data has not been scrubbed in time", "wait, and check that the disks are not always busy"},
	{"PG_NOT_DEEP_SCRUBBED", "some data has not been deep-scrubbed in time", "wait, and check that the disks are not always busy"},
	{"RECENT_CRASH", "a daemon has crashed", "see the details: ceph crash ls-new; then: ceph crash archive-all"},
}

// Explain decodes the output of `ceph health detail --format json`.
func Explain(raw []byte) (Health, error) {
	var report struct {
		Status string `json:"status"`
		Checks map[string]struct {
			Severity string `json:"severity"`
			Muted    bool   `json:"muted"`
			Summary  struct {
				Message string `json:"message"`
			} `json:"summary"`
			Detail []struct {
				Message string `json:"message"`
			} `json:"detail"`
		} `json:"checks"`
	}
	if len(raw) > maxHealthLen {
		return Health{}, fmt.Errorf("decode Ceph health: %d bytes", len(raw))
	}
	if err := json.Unmarshal(raw, &report); err != nil {
		return Health{}, fmt.Errorf("decode Ceph health: %w", err)
	}
	var h Health
	switch report.Status {
	case "HEALTH_OK":
		h.Level = OK
	case "HEALTH_WARN":
		h.Level = Warning
	case "HEALTH_ERR":
		h.Level = Error
	default:
		return Health{}, fmt.Errorf("decode Ceph health: unknown status %.40q", report.Status)
	}
	for _, code := range slices.Sorted(maps.Keys(report.Checks)) {
		c := report.Checks[code]
		if c.Muted {
			continue
		}
		check := Check{Code: clip(code), Level: Warning, Summary: clip(c.Summary.Message)}
		if c.Severity == "HEALTH_ERR" {
			check.Level = Error
		}
		for _, d := range c.Detail[:min(len(c.Detail), maxDetails)] {
			check.Details = append(check.Details, clip(d.Message))
		}
		h.Checks = append(h.Checks, check)
	}
	slices.SortStableFunc(h.Checks, func(a, b Check) int { return cmp.Compare(rank(a.Code), rank(b.Code)) })
	h.Checks = h.Checks[:min(len(h.Checks), maxChecks)]
	return h.inWords(), nil
}

func (h Health) inWords() Health {
	if len(h.Checks) == 0 {
		h.Summary = "all data is available with all replicas"
		return h
	}
	var says []string
	for i, c := range h.Checks {
		if w := explained(c); !slices.Contains(says, w) {
			says = append(says, w)
		}
		if i == 0 {
			h.Next = "see " + c.Code + " in the Ceph documentation"
			if r := rank(c.Code); r < len(explanations) {
				h.Next = explanations[r].next
			}
		}
	}
	// An OSD that is down explains missing copies: until it is marked out, no new
	// ones are created.
	h.Summary = strings.Join(says[:min(len(says), 3)], "; ")
	if more := len(says) - 3; more > 0 {
		h.Summary += fmt.Sprintf("; and %d more", more)
	}
	return h
}

func explained(c Check) string {
	r := rank(c.Code)
	if r == len(explanations) {
		return c.Summary
	}
	says := explanations[r].says
	if len(c.Details) == 1 {
		says += " (" + c.Details[0] + ")"
	}
	return says
}

func rank(code string) int {
	if r := slices.IndexFunc(explanations, func(w explanation) bool { return w.code == code }); r >= 0 {
		return r
	}
	return len(explanations)
}

// clip limits text for a status.
func clip(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}
