package simulation

import (
	"errors"
	"testing"
)

func TestSortsOfFailures(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"ins-04 ran 131.8 vCPU s and pays for 138.0", "ins-11 ran 9.0 vCPU s and pays for 352.0", true},
		{"ins-04 ran 131.8 vCPU s and pays for 138.0", "Instance ins-04 was acknowledged as created, and is not", false},
		{"ins-08 starts on node-5 from disk /node-5/fake/volumes/vol-ins-08 of generation 1, want 3: written data is lost",
			"ins-02 starts on node-1 from disk /node-1/fake/volumes/vol-ins-02 of generation 2, want 4: written data is lost", true},
		{"6m10s after everything was healed: ins-01 has no node; node-4 is \"\": ", "6m20s after everything was healed: ins-02 has no node", true},
		{"6m10s after everything was healed: ins-01 has no node", "6m10s after everything was healed: vol-ins-01 is still being deleted on node-2", false},
		{"ins-01 runs on node-1 (Running) and on node-2 (Running)", "node-1 is declared lost, and ins-01 runs there", false},
	} {
		if got := classOf(errors.New(c.a)) == classOf(errors.New(c.b)); got != c.same {
			t.Errorf("classes of %q and %q: %q and %q, equal = %t, want %t", c.a, c.b, classOf(errors.New(c.a)), classOf(errors.New(c.b)), got, c.same)
		}
	}
}
