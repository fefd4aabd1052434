package state

import (
	"slices"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

// Parts follow each other without a gap, and have the same digests however the log was
// split into transactions.
func TestParts(t *testing.T) {
	whole, pieces := bare(t), bare(t)
	var all []Entry
	for k := 1; k <= 40; k++ {
		all = append(all, logEntry(t, uint64(k), statetest.Batch(k%statetest.Clients, k)))
	}
	mustApply(t, whole, all...)
	for _, e := range all {
		mustApply(t, pieces, e)
	}
	read := func(tb *tables, limit int64) (sums []string, bytes int64) {
		t.Helper()
		if err := tb.read(func(v View) error {
			for from := (Place{}); ; {
				p := v.Part(40, from, limit)
				sums, bytes = append(sums, string(p.Sum)), bytes+p.Bytes
				if from = p.Next; from.Bucket == "" {
					return nil
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
		return sums, bytes
	}
	_, want := read(whole, 1<<30)
	for _, limit := range []int64{1, 1000, 1 << 20} {
		a, n := read(whole, limit)
		b, _ := read(pieces, limit)
		if n != want || !slices.Equal(a, b) {
			t.Errorf("parts of %d bytes: %d bytes in all, want %d; %d digests when applied at once and %d one by one, equal: %v", limit, n, want, len(a), len(b), slices.Equal(a, b))
		}
	}
}
