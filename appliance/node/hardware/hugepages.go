package hardware

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// HugePages returns the huge pages that the kernel has reserved, by the sizes that
// instances can have (Documentation/admin-guide/mm/hugetlbpage.rst), the smallest
// first, without sizes of which there are none.
func HugePages(f fs.FS) []api.NodeHugePages { return pagesIn(f, "sys/kernel/mm/hugepages") }

// pagesIn returns the huge pages that a directory of the kernel shows: those of the
// machine, or of a NUMA cell.
func pagesIn(f fs.FS, all string) (found []api.NodeHugePages) {
	for _, size := range api.AllHugePages {
		dir := path.Join(all, fmt.Sprintf("hugepages-%dkB", size.Bytes()>>10))
		total, _ := number(f, dir, "nr_hugepages")
		free, _ := number(f, dir, "free_hugepages")
		if most := int64(1<<50) / size.Bytes(); total > 0 && total <= most {
			found = append(found, api.NodeHugePages{Size: size, TotalBytes: total * size.Bytes(), FreeBytes: min(max(free, 0), total) * size.Bytes()})
		}
	}
	return found
}

// askedPages returns how many bytes of each size the kernel's command line reserves
// (hugepagesz= and hugepages=, kernel-parameters.txt). Numbers for NUMA nodes
// (0:512) are added up.
func askedPages(words string) map[api.HugePages]int64 {
	asked := map[api.HugePages]int64{}
	size := api.HugePages2Mi // the kernel's default on x86
	for word := range strings.FieldsSeq(words) {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "default_hugepagesz", "hugepagesz":
			size = map[string]api.HugePages{"2M": api.HugePages2Mi, "1G": api.HugePages1Gi}[strings.ToUpper(value)]
		case "hugepages":
			for part := range strings.SplitSeq(value, ",") {
				if _, of, ok := strings.Cut(part, ":"); ok {
					part = of
				}
				if n, err := strconv.ParseInt(part, 10, 32); err == nil && n > 0 && size != "" {
					asked[size] += n * size.Bytes()
				}
			}
		}
	}
	return asked
}

// hugePages compares what is reserved with what the kernel's command line asks for,
// and with the machine's memory.
func hugePages(f Facts) api.HardwareCheck {
	const id = api.HardwareHugePages
	has := map[api.HugePages]int64{}
	var words []string
	var sum int64
	for _, p := range HugePages(f.FS) {
		has[p.Size] = p.TotalBytes
		sum += p.TotalBytes
		words = append(words, fmt.Sprintf("%s in pages of %s, %s free", gibibytes(p.TotalBytes), pageName(p.Size), gibibytes(p.FreeBytes)))
	}
	found := strings.Join(words, "; ")
	if found == "" {
		found = "none are reserved"
	}
	asked := askedPages(read(f.FS, "proc/cmdline"))
	for _, size := range api.AllHugePages {
		if asked[size] > has[size] {
			return warning(id, fmt.Sprintf("%s (the kernel's command line asks for %s in pages of %s)", found, gibibytes(asked[size]), pageName(size)),
				"The kernel did not find that much memory in one piece: fewer instances with huge pages fit.",
				"Reserve fewer, or restart the node; pages of 1 GiB are best reserved on the kernel's command line.")
		}
	}
	if total := totalMemory(f.FS); total > 0 && sum > total/10*9 {
		return warning(id, fmt.Sprintf("%s, of %s of memory", found, gibibytes(total)),
			"Less than a tenth of the memory is left for the node itself and for instances without huge pages: programs may be killed.", "Reserve fewer.")
	}
	return ok(id, found)
}

// gibibytes formats a size in GiB.
func gibibytes(n int64) string { return strconv.FormatFloat(float64(n>>20)/1024, 'g', 4, 64) + " GiB" }

func pageName(size api.HugePages) string {
	if size == api.HugePages1Gi {
		return "1 GiB"
	}
	return "2 MiB"
}

// totalMemory returns the machine's memory in bytes, as the kernel reports it.
func totalMemory(f fs.FS) int64 {
	for text := range strings.Lines(read(f, "proc/meminfo")) {
		if value, ok := strings.CutPrefix(text, "MemTotal:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 50)
			return kib << 10
		}
	}
	return 0
}
