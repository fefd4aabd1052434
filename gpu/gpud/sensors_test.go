package gpud_test

import (
	"errors"
	"testing"

	"github.com/basalt-gpu/basalt/gpu/abi"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// A card's fault is seen by who owns the node and by who asks from the guest, as
// far as the card knows of it.
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
				t.Errorf("the card is failed %q, throttled %v, %d °C, want %v, %v, %d", g.Failed, g.Throttled, g.Temperature, c.failed, c.throttled, c.celsius)
			}
			n.put("a", gib, 0)
			h := n.dial("a")
			if d := h.Device(); d.Fault != string(c.fault) {
				t.Errorf("the worker is told of fault %q, want %q", d.Fault, c.fault)
			}
			if s, err := h.Status(); !errors.Is(err, c.status) || s.Temperature != c.celsius {
				t.Errorf("the vGPU's status: %d °C, %v; want %d, %v", s.Temperature, err, c.celsius, c.status)
			}
		})
	}
}
