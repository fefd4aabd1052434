package hardware

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// numaNode is a NUMA node (Documentation/ABI/stable/sysfs-devices-node).
type numaNode struct {
	name   string
	memory int64 // bytes
	cpus   bool
}

func readNUMA(f fs.FS) (all []numaNode) {
	const dir = "sys/devices/system/node"
	for _, name := range names(f, dir, "node") {
		if _, err := strconv.Atoi(strings.TrimPrefix(name, "node")); err != nil {
			continue
		}
		n := numaNode{name: name, cpus: line(f, dir, name, "cpulist") != ""}
		for text := range strings.Lines(read(f, dir+"/"+name+"/meminfo")) {
			if _, value, ok := strings.Cut(text, "MemTotal:"); ok {
				kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 50)
				n.memory = kib << 10
			}
		}
		all = append(all, n)
	}
	return all
}

func numa(f Facts) api.HardwareCheck {
	const id = api.HardwareNUMA
	all := readNUMA(f.FS)
	if len(all) == 0 {
		return unknown(id, "the kernel shows no NUMA nodes", "")
	}
	var words []string
	var least, most int64
	without := false
	for i, n := range all {
		words = append(words, fmt.Sprintf("%s %d GiB", n.name, n.memory>>30))
		if n.cpus && n.memory == 0 {
			without = true
		}
		if n.cpus && (i == 0 || n.memory < least) {
			least = n.memory
		}
		most = max(most, n.memory)
	}
	const advice = "Put memory modules into the slots that the board's manual names, the same for every processor."
	switch {
	case without:
		return warning(id, few(words), "A processor has no memory of its own: all that runs on it goes through another's, which is slow.", advice)
	case len(all) > 1 && least*2 < most:
		return warning(id, few(words), "One processor has less than half of another's memory: instances use far memory sooner, which is slow.", advice)
	}
	return ok(id, few(words))
}

func memory(f Facts) api.HardwareCheck {
	const id, dir = api.HardwareMemory, "sys/devices/system/edac/mc"
	const replace = "Find the module (the BMC's log, or ras-mc-ctl --errors), drain the node and replace it."
	for text := range strings.Lines(read(f.FS, "proc/meminfo")) {
		if value, ok := strings.CutPrefix(text, "HardwareCorrupted:"); ok {
			if kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 50); kib > 0 {
				return failed(id, fmt.Sprintf("%d KiB of memory are broken and out of use", kib), "A memory module fails: instances that had that memory were killed, and more errors follow.", replace)
			}
		}
	}
	var corrected, lost int64
	controllers := 0
	for _, name := range names(f.FS, dir, "mc") {
		ce, seen := number(f.FS, dir, name, "ce_count")
		ue, _ := number(f.FS, dir, name, "ue_count")
		if seen {
			controllers++
			corrected, lost = corrected+max(ce, 0), lost+max(ue, 0)
		}
	}
	switch {
	case lost > 0:
		return failed(id, fmt.Sprintf("%d errors that could not be corrected, %d corrected, since the start", lost, corrected), "A memory module fails: programs and instances crash, or compute wrong results.", replace)
	case corrected > 0:
		return warning(id, fmt.Sprintf("%d corrected errors since the start", corrected), "A memory module is wearing out; errors that cannot be corrected may follow.", replace)
	case controllers > 0:
		return ok(id, "no errors (ECC)")
	case readCPU(f.FS).virtual():
		return ok(id, "a virtual machine: its host counts errors")
	}
	return unknown(id, "the kernel counts no errors: memory without ECC, or no driver for its controller", "On a server, see lsmod for edac and dmesg for EDAC.")
}
