package gpud

import (
	"errors"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
)

// NVIDIACards returns this machine's NVIDIA cards as reported by NVML, for basalt-gpud
// doctor. Driver settings with which workers cannot share a card are an error with a
// hint how to change them.
func NVIDIACards() (list []wire.GPU, err error) {
	n, err := openNVIDIA()
	if errors.Is(err, errNoDriver) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer n.close()
	cards, errs := n.cards()
	for i, c := range cards {
		list = append(list, wire.GPU{ID: string(c.ID), UUID: c.UUID.String(), Name: c.Name, Driver: c.Driver, VRAMBytes: c.VRAM, Multiprocessors: c.SMs})
		errs = append(errs, n.settings(i))
	}
	return list, errors.Join(errs...)
}
