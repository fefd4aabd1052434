package drivertest

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// reserve reserves the given number of additional huge pages of 2 MiB for the
// duration of the test. It skips the test if the kernel has no support for
// them or the reservation is not permitted.
func reserve(t *testing.T, pages int) (free func() int) {
	t.Helper()
	const dir = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
	number := func(name string) int {
		raw, err := os.ReadFile(dir + name)
		if err != nil {
			t.Skipf("the kernel does not support huge pages of 2 MiB: %v", err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(raw)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	had, unused := number("nr_hugepages"), number("free_hugepages")
	set := func(n int) error { return os.WriteFile(dir+"nr_hugepages", []byte(strconv.Itoa(n)), 0o644) }
	if err := set(had + pages); err != nil {
		t.Skipf("cannot reserve huge pages on this machine: %v", err)
	}
	t.Cleanup(func() {
		if err := set(had); err != nil {
			t.Errorf("restore the number of huge pages: %v", err)
		}
	})
	if number("free_hugepages") < unused+pages {
		t.Skip("the kernel has too little contiguous memory for huge pages")
	}
	return func() int { return number("free_hugepages") }
}

// testHugePages checks that all memory of a machine is in huge pages from its
// start, and that a machine for which there are too few does not start and
// uses none.
func testHugePages(t *testing.T, b *bench) {
	d := b.domain(t)
	d.HugePages = 2 << 20
	const pages = 64 << 20 / (2 << 20)
	free := func() int { return 0 }
	if b.Slow {
		free = reserve(t, pages)
	}
	before := free()
	if err := b.Define(b.ctx, d); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	b.until(t, "the guest is ready", func() bool {
		text, err := b.ConsoleLog(b.ctx, d.ID, 4096)
		return err == nil && len(text) > 0
	})
	if !b.Slow {
		return
	}
	if taken := before - free(); taken != pages {
		t.Errorf("the machine uses %d huge pages, want %d", taken, pages)
	}
	more := b.domain(t)
	more.HugePages, more.MemoryBytes = d.HugePages, int64(before+1)*d.HugePages
	if err := b.Define(b.ctx, more); err != nil {
		t.Fatal(err)
	}
	if err := b.Start(b.ctx, more.ID); err == nil {
		t.Error("start of a machine with more huge pages than exist = nil, want an error")
	}
	if err := b.Destroy(b.ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if now := free(); now != before {
		t.Errorf("%d huge pages are free after the machines have ended, want %d", now, before)
	}
}
