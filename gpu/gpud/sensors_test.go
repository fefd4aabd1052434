package gpud_test

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// TestFaultsOfCardsShow checks that a card's fault is reported to the node's
// operator and to the guest, as far as the card detects it.
func TestFaultsOfCardsShow(t *testing.T) {
	for _, c := range []struct {
		fault             model.Fault
		failed, throttled bool
		celsius           uint32
		status            error
	}{
		{},
		{fault: model.ECC, failed: true},
		{fault: model.Lost, failed: true, status: abi.ErrUnavailable},
		{fault: model.Hang},
		{fault: model.Slow},
		{fault: model.Throttled, throttled: true, celsius: 95},
	} {
		t.Run("fault="+string(c.fault), func(t *testing.T) {
			n := newTestNode(t)
			n.stop()
			n.cfg.SoftGPUs[0].Fault = c.fault
			n.start()
			cards, err := n.control.GPUs(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if g := cards[0]; (g.Failed != "") != c.failed || g.Throttled != c.throttled || g.Temperature != c.celsius {
				t.Errorf("card: failed %q, throttled %v, %d °C; want failed %v, throttled %v, %d °C", g.Failed, g.Throttled, g.Temperature, c.failed, c.throttled, c.celsius)
			}
			n.put("a", gib, 0)
			h := n.dial("a")
			if d := h.Device(); d.Fault != string(c.fault) {
				t.Errorf("fault in the worker's device = %q, want %q", d.Fault, c.fault)
			}
			if s, err := h.Status(); !errors.Is(err, c.status) || s.Temperature != c.celsius {
				t.Errorf("status of the vGPU = %d °C, %v; want %d °C, %v", s.Temperature, err, c.celsius, c.status)
			}
		})
	}
}
