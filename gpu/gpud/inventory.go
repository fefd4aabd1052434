package gpud

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/gpud/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// uuid is the UUID of a card or a vGPU.
type uuid [16]byte

func newUUID() (u uuid) {
	rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// String formats the UUID as nvidia-smi does.
func (u uuid) String() string {
	h := hex.EncodeToString(u[:])
	return "GPU-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (u uuid) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

func (u *uuid) UnmarshalText(b []byte) error {
	n, err := hex.Decode(u[:], []byte(strings.ReplaceAll(strings.TrimPrefix(string(b), "GPU-"), "-", "")))
	if err != nil || n != 16 {
		return fmt.Errorf("%q is not a valid GPU UUID", b)
	}
	return nil
}

// cardInfo is an entry of the inventory.
type cardInfo struct {
	ID     sched.GPUID
	UUID   uuid
	Name   string
	Driver string
	VRAM   uint64
	SMs    int
	// Address is the PCI address, such as 0000:65:00.0; empty: not on a PCI bus,
	// or not known.
	Address string
	// Model and Capability are those of a soft GPU (90 is compute capability
	// 9.0); empty and 0: the defaults.
	Model      string
	Capability int
	Fault      model.Fault // injected
	Check      string      // kernel checks that a soft GPU performs
	Engine     model.Engine
}

func (c cardInfo) device() *wire.Device {
	return &wire.Device{Driver: c.Driver, UUID: c.UUID, Name: c.Name, VRAMBytes: c.VRAM, Multiprocessors: c.SMs, Model: c.Model, Capability: c.Capability, Fault: string(c.Fault), Check: c.Check, Engine: string(c.Engine)}
}

// madeKind is a kind of card that is created by configuration.
type madeKind struct{ kind, driver, name string }

var (
	softKind = madeKind{"soft", wire.DriverSoft, "Basalt Soft GPU"}
	nullKind = madeKind{"null", wire.DriverNull, "Null GPU, computes nothing"}
)

// madeCards creates cards from the configuration. A card keeps the UUID that it
// got when it was first seen (known, by ID; new ones are added to it).
func madeCards(cfg Config, known map[sched.GPUID]uuid) ([]cardInfo, error) {
	var cards []cardInfo
	seen := map[string]bool{}
	add := func(g SoftGPU, k madeKind) error {
		if err := g.check(k.kind); err != nil {
			return err
		}
		if seen[g.Name] {
			return fmt.Errorf("two soft or null GPUs have the name %q", g.Name)
		}
		seen[g.Name] = true
		id := sched.GPUID(g.Name)
		if _, ok := known[id]; !ok {
			known[id] = newUUID()
		}
		cards = append(cards, g.card(id, known[id], k))
		return nil
	}
	for _, g := range cfg.SoftGPUs {
		if err := add(g, softKind); err != nil {
			return nil, err
		}
	}
	for _, g := range cfg.NullGPUs {
		if err := add(SoftGPU(g), nullKind); err != nil {
			return nil, err
		}
	}
	return cards, nil
}

// card returns the inventory entry of a soft GPU; the configuration has been
// validated.
func (g SoftGPU) card(id sched.GPUID, u uuid, k madeKind) cardInfo {
	c := cardInfo{ID: id, UUID: u, Name: k.name, Driver: k.driver, VRAM: g.VRAM, SMs: g.SMs, Model: g.Model, Capability: g.Capability, Fault: g.Fault, Check: g.Check, Engine: g.Engine}
	if m, err := model.Find(g.Model); err == nil && g.Model != "" {
		c.Name = m.Name
	}
	return c
}
