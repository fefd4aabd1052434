package state

import (
	"bytes"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/controlplane/store/state/statetest"
)

func useOf(t *testing.T, tb *tables, org string) (page api.UsePage) {
	t.Helper()
	if err := tb.read(func(v View) (err error) {
		page, err = v.Use(api.UseQuery{Organization: org, Limit: api.MaxUse})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return page
}

// FuzzUse decodes rows that may be damaged: it must not panic, and an accepted row
// encodes to the same bytes again.
func FuzzUse(f *testing.F) {
	u := api.Use{Hour: statetest.Began, Meter: api.MeterGPU, Project: "prj-1", Resource: "ins-1", ResourceName: "web", NamedAt: statetest.Began, Quantity: 7}
	f.Add(useKey("", u)[1:], encodeUse(u))
	f.Add([]byte{}, []byte{})
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01a\x00b\x00"), make([]byte, 16))
	f.Fuzz(func(t *testing.T, key, row []byte) {
		if u, err := decodeUseKey(key, interned{}); err == nil && !bytes.Equal(useKey("", u)[1:], key) {
			t.Errorf("key %q decodes to %+v, which encodes to %q", key, u, useKey("", u)[1:])
		}
		if u, err := decodeUse(row, interned{}); err == nil && !bytes.Equal(encodeUse(u), row) {
			t.Errorf("row %q decodes to %+v, which encodes to %q", row, u, encodeUse(u))
		}
	})
}

// Below their level marks of use are not checked: members of the release before do not
// know them, and must compute the same tables.
func TestUseMarksBeginWithTheirLevel(t *testing.T) {
	for level, refused := range map[int]bool{useMarkLevel - 1: false, useMarkLevel: true} {
		tb := bare(t)
		settleAt(t, tb, 1, level)
		all := statetest.Marks(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC))
		for i, b := range all[:2] {
			mustApply(t, tb, logEntry(t, uint64(i)+2, b))
		}
		answers, _ := mustApply(t, tb, logEntry(t, 4, all[2]))
		if got := answers[0].Refused != nil; got != refused {
			t.Errorf("level %d: deletion with an old mark refused = %v, want %v", level, got, refused)
		}
	}
}
