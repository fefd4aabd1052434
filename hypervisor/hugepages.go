package hypervisor

import lx "libvirt.org/go/libvirtxml"

// hugePages back the domain's memory; nil: ordinary pages do. QEMU takes all of them when
// it starts, and does not start where there are too few: libvirt asks it to.
func (d Domain) hugePages() *lx.DomainMemoryHugepages {
	if d.HugePages == 0 {
		return nil
	}
	return &lx.DomainMemoryHugepages{Hugepages: []lx.DomainMemoryHugepage{{Size: uint(d.HugePages / mib), Unit: "MiB"}}}
}

// sameHugePages reports whether a running domain has the pages that its target would
// have. libvirt gives their size in KiB.
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
