package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/basalt-gpu/basalt/api"
)

const gib = 1 << 30

func TestPlace(t *testing.T) {
	const mib = 2048 // in sectors
	empty := gpt{sectorBytes: 512, first: 2048, last: 10*gib/512 - 34}
	used := empty
	used.parts = []partition{{start: 2048, sectors: 1024 * mib}, {start: 3073 * mib, sectors: 1024 * mib}}
	odd := gpt{sectorBytes: 512, first: 34, last: 2*gib/512 - 34}
	for _, c := range []struct {
		name       string
		table      gpt
		bytes      int64
		start, len int64
		says       string
	}{
		{"in an empty table", empty, 4 * gib, 2048, 4096 * mib, ""},
		{"in the gap that a released one left", used, 2 * gib, 1025 * mib, 2048 * mib, ""},
		{"behind the others", used, 3 * gib, 4097 * mib, 3072 * mib, ""},
		{"rounded up to a MiB", empty, gib + 1, 2048, 1025 * mib, ""},
		{"on a boundary of a MiB", odd, gib, mib, 1024 * mib, ""},
		{"too large", empty, 10 * gib, 0, 0, "has 10238 MiB of contiguous free space, want 10240 MiB"},
		{"too large for every gap", used, 7 * gib, 0, 0, "has 6142 MiB of contiguous free space, want 7168 MiB"},
	} {
		start, sectors, err := c.table.place(c.bytes)
		if start != c.start || sectors != c.len && err == nil || (err == nil) != (c.says == "") {
			t.Errorf("%s: place = %d, %d, %v, want %d, %d, an error with %q", c.name, start, sectors, err, c.start, c.len, c.says)
		}
		if err != nil && (api.CodeOf(err) != api.CodeDiskFull || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error = %v, want %s with %q", c.name, err, api.CodeDiskFull, c.says)
		}
	}
}

// TestCommands has the commands for a disk with databases, for device classes and for
// their rules.
func TestCommands(t *testing.T) {
	var b strings.Builder
	show := func(program string, args []string, stdin string) {
		fmt.Fprintf(&b, "%s %s\n", program, strings.Join(args, " "))
		for line := range strings.Lines(stdin) {
			b.WriteString("\t< " + line)
		}
	}
	show("sfdisk", sfdiskArgs(tableDisk), tableScript(tableA))
	empty := gpt{sectorBytes: 4096, first: 6, last: 100 * gib / 4096}
	start, sectors, err := empty.place(30 * gib)
	if err != nil {
		t.Fatal(err)
	}
	show("sfdisk", sfdiskArgs(tableDisk, "--append"), partScript(start, sectors, osdA))
	show("sfdisk", sfdiskArgs(tableDisk, "--delete", "1"), "")
	show("ceph", ruleArgs(Action{Name: "host"}), "")
	show("ceph", ruleArgs(Action{Name: "host", Class: "ssd"}), "")
	show("ceph", ruleArgs(Action{Name: "osd", Class: "nvme"}), "")
	show("ceph", nil, setClass(Action{ID: 7, Class: "hdd"}))
	golden(t, "testdata/commands.txt", b.String())
}

// TestTable creates, reads and changes a table with sfdisk, in a file.
func TestTable(t *testing.T) {
	if _, err := exec.LookPath("sfdisk"); err != nil {
		t.Skip("host: sfdisk is not installed")
	}
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4*gib); err != nil {
		t.Fatal(err)
	}
	ctx, table := t.Context(), Table{Node: "node-a", Path: path, UUID: tableA}
	probed := func(when string, want FoundTable) {
		t.Helper()
		got, err := probeTable(ctx, table)
		want.Path = path
		for i := range want.Parts {
			want.Devices = append(want.Devices, fmt.Sprintf("%s%d", path, i+1))
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("probeTable %s: %v (-want +got):\n%s", when, err, diff)
		}
	}
	probed("of an empty disk", FoundTable{Content: Blank})
	n, in := Node{ID: "node-a"}, Intent{Tables: []Table{table}}
	if err := n.Do(ctx, in, Keys{}, Action{Do: MakeTable, Name: tableA, Path: path}); err != nil {
		t.Fatal(err)
	}
	const free = 4*gib - 1<<20 - 33*512
	probed("of a new table", FoundTable{Content: Parted, UUID: tableA, FreeBytes: free})
	for _, osd := range []string{osdA, osdB} {
		g, err := readTable(ctx, path)
		if err != nil {
			t.Fatal(err)
		}
		start, sectors, err := g.place(gib)
		if err != nil {
			t.Fatal(err)
		}
		if err := editTable(ctx, path, partScript(start, sectors, osd), "--append"); err != nil {
			t.Fatal(err)
		}
	}
	probed("with two partitions", FoundTable{Content: Parted, UUID: tableA, Parts: []string{osdA, osdB}, FreeBytes: free - 2*gib})
	if err := n.Do(ctx, Intent{Tables: []Table{{Path: path, UUID: tableA, Leave: true}}}, Keys{}, Action{Do: DropTable, Name: tableA, Path: path}); err != nil {
		t.Fatal(err)
	}
	probed("after it was to be removed with its partitions", FoundTable{Content: Parted, UUID: tableA, Parts: []string{osdA, osdB}, FreeBytes: free - 2*gib})
	if err := editTable(ctx, path, "", "--delete", "1"); err != nil {
		t.Fatal(err)
	}
	g, err := readTable(ctx, path)
	if _, has := g.part(osdB); err != nil || !has || len(g.parts) != 1 || g.parts[0].number != 2 {
		t.Errorf("table after deleting a partition = %+v, %v, want partition 2 of %s", g, err, osdB)
	}
	other := table
	other.UUID = osdC
	if got, err := probeTable(ctx, other); err != nil || got.Content != Other || got.What == "" {
		t.Errorf("probeTable of another table = %+v, %v, want content %s with a description", got, err, Other)
	}
	if err := editTable(ctx, path, "", "--delete", "2"); err != nil {
		t.Fatal(err)
	}
	if err := n.Do(ctx, Intent{Tables: []Table{{Path: path, UUID: tableA, Leave: true}}}, Keys{}, Action{Do: DropTable, Name: tableA, Path: path}); err != nil {
		t.Fatal(err)
	}
	probed("after it was removed", FoundTable{Content: Blank})
}
