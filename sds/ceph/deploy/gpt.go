package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/basalt-gpu/basalt/api"
)

// gpt is a partition table as sfdisk prints it. Positions are in sectors.
type gpt struct {
	uuid        string
	sectorBytes int64
	first, last int64 // the sectors that partitions may use
	parts       []partition
}

// partition is one partition of a gpt.
type partition struct {
	number         int
	path           string // of its device
	uuid           string
	start, sectors int64
}

const (
	maxParts  = 128
	alignment = 1 << 20 // of partitions, in bytes
	partName  = "basalt-osd-db"
)

// decodeTable decodes the output of sfdisk --json. A table of another format
// results in a gpt without a UUID.
func decodeTable(raw []byte) (gpt, error) {
	var out struct {
		Table struct {
			Label      string
			ID         string
			Unit       string
			FirstLBA   int64
			LastLBA    int64
			SectorSize int64
			Device     string
			Partitions []struct {
				Node        string
				Start, Size int64
				UUID        string
			}
		} `json:"partitiontable"`
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return gpt{}, fmt.Errorf("decode output of sfdisk: %w", err)
	}
	in := out.Table
	if in.Label != "gpt" {
		return gpt{}, nil
	}
	t := gpt{uuid: strings.ToLower(in.ID), sectorBytes: in.SectorSize, first: in.FirstLBA, last: in.LastLBA}
	if t.sectorBytes < 512 || t.sectorBytes > alignment || t.first < 0 || t.last < t.first || in.Unit != "sectors" || len(in.Partitions) > maxParts {
		return gpt{}, fmt.Errorf("decode output of sfdisk: invalid table: %.200q", raw)
	}
	for _, p := range in.Partitions {
		var n int
		digits := p.Node[len(strings.TrimRight(p.Node, "0123456789")):]
		if _, err := fmt.Sscan(digits, &n); err != nil || p.Start < t.first || p.Size <= 0 || p.Start+p.Size-1 > t.last {
			return gpt{}, fmt.Errorf("decode output of sfdisk: invalid partition %.80q", p.Node)
		}
		t.parts = append(t.parts, partition{n, p.Node, strings.ToLower(p.UUID), p.Start, p.Size})
	}
	slices.SortFunc(t.parts, func(a, b partition) int { return int(min(max(a.start-b.start, -1), 1)) })
	return t, nil
}

// part returns the partition with the UUID.
func (t gpt) part(uuid string) (partition, bool) {
	if at := slices.IndexFunc(t.parts, func(p partition) bool { return p.uuid == uuid }); at >= 0 {
		return t.parts[at], true
	}
	return partition{}, false
}

// place returns the start and the length in sectors of a new partition of that many
// bytes: in the first gap that is large enough.
func (t gpt) place(bytes int64) (start, sectors int64, err error) {
	grain := alignment / t.sectorBytes
	sectors = (bytes + alignment - 1) / alignment * grain
	up := func(sector int64) int64 { return (sector + grain - 1) / grain * grain }
	start, largest := up(t.first), int64(0)
	for _, p := range append(slices.Clone(t.parts), partition{start: t.last + 1}) {
		if p.start-start >= sectors {
			return start, sectors, nil
		}
		largest = max(largest, p.start-start)
		start = max(start, up(p.start+p.sectors))
	}
	return 0, 0, api.Errorf(api.CodeDiskFull, "the disk for the database has %d MiB of contiguous free space, want %d MiB", largest*t.sectorBytes>>20, sectors*t.sectorBytes>>20)
}

// freeBytes returns the space without a partition.
func (t gpt) freeBytes() int64 {
	free := t.last - t.first + 1
	for _, p := range t.parts {
		free -= p.sectors
	}
	return max(free*t.sectorBytes, 0)
}

// sfdiskArgs returns the arguments of sfdisk for an operation on a disk: an option and
// what follows the device. The kernel is told by partx instead: the partitions of other
// OSDs are in use, and sfdisk would refuse.
func sfdiskArgs(dev string, operation ...string) []string {
	args := []string{"--no-reread", "--no-tell-kernel", "--wipe", "never", "--wipe-partitions", "never"}
	if len(operation) > 0 {
		args = append(args, operation[0])
	}
	args = append(args, dev)
	return append(args, operation[min(1, len(operation)):]...)
}

// tableScript returns the input of sfdisk that creates an empty table.
func tableScript(uuid string) string { return "label: gpt\nlabel-id: " + uuid + "\n" }

// partScript returns the input of sfdisk --append that creates an OSD's partition.
func partScript(start, sectors int64, uuid string) string {
	return fmt.Sprintf("start=%d, size=%d, uuid=%s, name=%s\n", start, sectors, uuid, partName)
}
