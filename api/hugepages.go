package api

import "cmp"

// HugePages is the size of the pages that back an instance's memory on its node; empty
// means ordinary pages of 4 KiB.
type HugePages string

// Sizes of huge pages.
const (
	HugePages2Mi HugePages = "2Mi"
	HugePages1Gi HugePages = "1Gi"
)

// AllHugePages lists the sizes in ascending order.
var AllHugePages = []HugePages{HugePages2Mi, HugePages1Gi}

// Bytes returns the size of one page; 0 for ordinary ones.
func (h HugePages) Bytes() int64 {
	switch h {
	case HugePages2Mi:
		return 2 << 20
	case HugePages1Gi:
		return 1 << 30
	}
	return 0
}

// HugePages returns the node's reserved huge pages of a size, as last reported.
func (n Node) HugePages(of HugePages) NodeHugePages {
	for _, p := range n.Status.HugePages {
		if p.Size == of {
			return p
		}
	}
	return NodeHugePages{Size: of}
}

// HugePagesWithoutVGPU explains why an instance with a virtual GPU cannot use huge
// pages: GPU workers map single 4 KiB pages of guest programs, and the kernel maps huge
// pages only as a whole.
const HugePagesWithoutVGPU = "huge pages cannot back the memory of an instance with a virtual GPU"

// HugePagesOf returns the page size of an instance of the flavor; the instance's own
// setting takes precedence.
func (s InstanceSpec) HugePagesOf(f FlavorSpec) HugePages { return cmp.Or(s.HugePages, f.HugePages) }

// wholePages checks that memory is a whole number of pages.
func wholePages(field string, memory int64, h HugePages) *Error {
	if size := h.Bytes(); size > 0 && memory%size != 0 {
		return invalid(field, "the memory is %d bytes, not a whole number of pages of %sB", memory, h).
			WithHint("choose pages of 2Mi, or a size of memory that is a multiple of the pages'")
	}
	return nil
}

// CheckHugePages returns an error if the instance cannot use the page size that it or
// its flavor sets.
func (s InstanceSpec) CheckHugePages(f FlavorSpec) error {
	if s.Vgpu != nil && s.HugePagesOf(f) != "" {
		return invalid("spec.hugePages", "%s: %s", HugePagesWithoutVGPU, s.HugePagesOf(f)).
			WithHint("choose a flavor without huge pages, or no virtual GPU")
	}
	if err := wholePages("spec.hugePages", f.MemoryBytes, s.HugePages); err != nil {
		return err
	}
	return nil
}
