package deploy

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if intended, run with -update\n got:\n%s\nwant:\n%s", path, got, want)
	}
}

// TestExplain decodes the output of `ceph health detail --format json` of Ceph
// 16.2 in real faults.
func TestExplain(t *testing.T) {
	files, err := filepath.Glob("testdata/health/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("testdata/health = %v, %v, want at least 4 files", files, err)
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		h, err := Explain(raw)
		if err != nil {
			t.Errorf("Explain(%s): %v", f, err)
			continue
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s: %s\nnext: %s\n", h.Level, h.Summary, h.Next)
		for _, c := range h.Checks {
			fmt.Fprintf(&b, "%s %s: %s\n", c.Level, c.Code, c.Summary)
			for _, d := range c.Details {
				fmt.Fprintf(&b, "\t%s\n", d)
			}
		}
		golden(t, strings.TrimSuffix(f, ".json")+".txt", b.String())
	}
}

// TestExplainMostUrgent checks that Next is that of the most urgent check, in
// any order of Ceph's checks.
func TestExplainMostUrgent(t *testing.T) {
	check := func(code, severity string) string {
		return fmt.Sprintf(`%q: {"severity": %q, "summary": {"message": "of Ceph: %s"}, "detail": [{"message": "a"}, {"message": "b"}]}`, code, severity, code)
	}
	for _, c := range []struct{ checks, next, says string }{
		{check("PG_DEGRADED", "HEALTH_WARN") + "," + check("OSD_FULL", "HEALTH_ERR"), "add a disk, or delete volumes, snapshots and images", "a disk is full, writes are blocked; some data has too few replicas"},
		{check("MON_DOWN", "HEALTH_WARN") + "," + check("OSD_DOWN", "HEALTH_WARN"), "check that the node is running and can reach the others", "the monitor of a voting node is down; a disk is down"},
		{check("NEW_CHECK", "HEALTH_WARN"), "see NEW_CHECK in the Ceph documentation", "of Ceph: NEW_CHECK"},
		{check("A", "") + "," + check("B", "") + "," + check("C", "") + "," + check("D", ""), "see A in the Ceph documentation", "of Ceph: A; of Ceph: B; of Ceph: C; and 1 more"},
	} {
		h, err := Explain([]byte(`{"status": "HEALTH_WARN", "checks": {` + c.checks + `}}`))
		if err != nil || h.Next != c.next || h.Summary != c.says || h.Level != Warning {
			t.Errorf("Explain of %s = %+v, %v, want a warning %q with next %q", c.checks, h, err, c.says, c.next)
		}
	}
	muted, err := Explain([]byte(`{"status": "HEALTH_OK", "checks": {"OSD_DOWN": {"muted": true}}}`))
	if err != nil || len(muted.Checks) != 0 || muted.Next != "" {
		t.Errorf("Explain of a muted check = %+v, %v, want no checks and nothing to do", muted, err)
	}
}

func FuzzExplain(f *testing.F) {
	files, _ := filepath.Glob("testdata/health/*.json")
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte(`{"status":"HEALTH_ERR","checks":{"X":{"severity":1}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := Explain(raw)
		if err != nil {
			return
		}
		if h.Summary == "" && len(h.Checks) == 0 || len(h.Checks) > maxChecks {
			t.Errorf("Explain = %+v, want a summary and at most %d checks", h, maxChecks)
		}
		for _, c := range h.Checks {
			if len(c.Summary) > maxText+4 || len(c.Details) > maxDetails {
				t.Errorf("check = %+v, want at most %d bytes of summary and %d details", c, maxText+4, maxDetails)
			}
		}
	})
}
