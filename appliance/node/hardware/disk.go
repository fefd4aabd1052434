package hardware

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// maxSMART limits what is read of smartctl's output for one disk, in bytes.
const maxSMART = 256 << 10

// smart is the part of the output of `smartctl --json --info --health --attributes`
// that the check uses (schema of smartmontools 7).
type smart struct {
	Model  string `json:"model_name"`
	Status *struct {
		Passed bool `json:"passed"`
	} `json:"smart_status"`
	NVMe *struct {
		Critical    int64 `json:"critical_warning"`
		Used        int64 `json:"percentage_used"`
		Spare       int64 `json:"available_spare"`
		Threshold   int64 `json:"available_spare_threshold"`
		MediaErrors int64 `json:"media_errors"`
	} `json:"nvme_smart_health_information_log"`
	ATA *struct {
		Table []struct {
			ID  int64 `json:"id"`
			Raw struct {
				Value int64 `json:"value"`
			} `json:"raw"`
		} `json:"table"`
	} `json:"ata_smart_attributes"`
}

// sectors are the attributes of ATA disks that count sectors which could not be
// read or were replaced.
var sectors = map[int64]string{5: "reallocated", 197: "pending", 198: "uncorrectable"}

// health is the state of a disk.
type health struct {
	state api.HardwareState
	why   string
}

// parseSMART decodes smartctl's output for a disk.
func parseSMART(raw []byte) health {
	if len(raw) > maxSMART {
		return health{api.HardwareUnknown, "the output of smartctl is too long"}
	}
	var s smart
	if err := json.Unmarshal(raw, &s); err != nil {
		return health{api.HardwareUnknown, "smartctl's answer cannot be read"}
	}
	n := s.NVMe
	switch {
	case s.Status != nil && !s.Status.Passed:
		return health{api.HardwareFailed, "reports that it fails (SMART)"}
	case n != nil && n.Critical != 0:
		return health{api.HardwareFailed, fmt.Sprintf("critical warning %#x", n.Critical)}
	case n != nil && n.Used >= 100:
		return health{api.HardwareWarning, fmt.Sprintf("%d %% of its life used", n.Used)}
	case n != nil && n.Threshold > 0 && n.Spare <= n.Threshold:
		return health{api.HardwareWarning, fmt.Sprintf("%d %% spare blocks left", n.Spare)}
	case n != nil && n.MediaErrors > 0:
		return health{api.HardwareWarning, fmt.Sprintf("%d media errors", n.MediaErrors)}
	}
	if s.ATA != nil {
		for _, a := range s.ATA.Table {
			if what := sectors[a.ID]; what != "" && a.Raw.Value&0xffffffff > 0 { // some vendors use the upper bits for other counters
				return health{api.HardwareWarning, fmt.Sprintf("%d %s sectors", a.Raw.Value&0xffffffff, what)}
			}
		}
	}
	if s.Status == nil {
		return health{api.HardwareUnknown, "has no SMART"}
	}
	return health{api.HardwareOK, ""}
}

// diskNames returns the names of the disks that have a hardware device.
func diskNames(f fs.FS) (all []string) {
	for _, name := range names(f, "sys/block", "") {
		if exists(f, "sys/block", name, "device") && !strings.HasPrefix(name, "sr") && len(all) < maxDisks {
			all = append(all, name)
		}
	}
	return all
}

func disks(f Facts) api.HardwareCheck {
	const id = api.HardwareDisks
	if f.Disks == nil {
		return unknown(id, "smartctl is not installed", "apt-get install smartmontools")
	}
	by := map[api.HardwareState][]string{}
	for _, d := range f.Disks {
		h := health{api.HardwareUnknown, "smartctl gave no answer"}
		if d.Err == nil {
			h = parseSMART(d.Output)
		}
		word := clean(d.Device, 32)
		if h.why != "" {
			word += " " + h.why
		}
		by[h.state] = append(by[h.state], word)
	}
	const advice = "Back up its data, drain the node, and replace the disk; smartctl -a says more."
	switch {
	case len(by[api.HardwareFailed]) > 0:
		return failed(id, few(by[api.HardwareFailed]), "The disk is about to fail, or has failed: volumes and state on it are lost then.", advice)
	case len(by[api.HardwareWarning]) > 0:
		return warning(id, few(by[api.HardwareWarning]), "The disk wears out or has lost sectors.", advice)
	case len(by[api.HardwareOK]) > 0:
		return ok(id, "healthy: "+few(by[api.HardwareOK]))
	case len(f.Disks) == 0:
		return unknown(id, "no disks", "")
	}
	return unknown(id, few(by[api.HardwareUnknown]), "Disks behind a RAID controller, and virtual ones, say nothing of their health: see the controller's own tool.")
}
