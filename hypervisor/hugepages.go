package hypervisor

import lx "libvirt.org/go/libvirtxml"

// hugePages returns the huge pages that back the domain's memory; nil:
// ordinary pages. QEMU allocates all of them at its start, and fails if there
// are too few, because libvirt requests so.
func (d Domain) hugePages() *lx.DomainMemoryHugepages {
	if d.HugePages == 0 {
		return nil
	}
	return &lx.DomainMemoryHugepages{Hugepages: []lx.DomainMemoryHugepage{{Size: uint(d.HugePages / mib), Unit: "MiB"}}}
}

// sameHugePages reports whether a running domain has the same page size as its
// target definition. libvirt reports the size in KiB.
func sameHugePages(running *lx.DomainMemoryBacking, want *lx.DomainMemoryHugepages) bool {
	var has *lx.DomainMemoryHugepages
	if running != nil {
		has = running.MemoryHugePages
	}
	return pageKiB(has) == pageKiB(want)
}

func pageKiB(h *lx.DomainMemoryHugepages) uint {
	if h == nil || len(h.Hugepages) == 0 {
		return 0
	}
	units := map[string]uint{"KiB": 1, "MiB": 1 << 10, "GiB": 1 << 20}
	return h.Hugepages[0].Size * units[h.Hugepages[0].Unit]
}
