package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestEvidenceOutlivesTheClone(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	kept, cache := t.TempDir(), t.TempDir()
	o := options{history: filepath.Join(cache, "test-history.txt")}
	flaky := test{module + "/ui", "TestX"}
	newReport(t.Output(), kept).keep(flaky, []string{"no answer in 60000 ms\n"})
	if err := os.WriteFile(filepath.Join(flaky.folder(kept), "page-1.png"), []byte("png"), 0o644); err != nil {
		t.Fatal(err)
	}
	find := func(pattern string) []string {
		found, err := filepath.Glob(filepath.Join(cache, "test-unsteady", pattern))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if err := o.keepEvidence(kept, nil, now); err != nil || len(find("*")) != 0 {
		t.Fatalf("keepEvidence without unsteady tests = %v, kept %v, want nothing", err, find("*"))
	}
	for i := range mostEvidence + 3 {
		if err := o.keepEvidence(kept, []test{flaky}, now.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(find("*")); n != mostEvidence {
		t.Errorf("kept the evidence of %d runs, want %d", n, mostEvidence)
	}
	for _, file := range []string{"output.txt", "page-1.png"} {
		if len(find("*/ui/TestX/"+file)) != mostEvidence {
			t.Errorf("%s is kept of %d runs, want %d: %v", file, len(find("*/ui/TestX/"+file)), mostEvidence, find("*/*/*"))
		}
	}
	if err := o.keepEvidence(kept, []test{{module + "/ui", "TestGone"}}, now); err == nil {
		t.Error("keepEvidence of a test without kept files succeeded, want an error")
	}
}
