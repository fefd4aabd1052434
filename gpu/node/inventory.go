package node

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/node/wire"
	"github.com/basalt-gpu/basalt/gpu/sched"
)

// uuid is a card's or a vGPU's, 16 bytes.
type uuid [16]byte

func newUUID() (u uuid) {
	rand.Read(u[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// String is as nvidia-smi writes it.
func (u uuid) String() string {
	h := hex.EncodeToString(u[:])
	return "GPU-" + h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (u uuid) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

func (u *uuid) UnmarshalText(b []byte) error {
	n, err := hex.Decode(u[:], []byte(strings.ReplaceAll(strings.TrimPrefix(string(b), "GPU-"), "-", "")))
	if err != nil || n != 16 {
		return fmt.Errorf("%q is no GPU UUID", b)
	}
	return nil
}

// cardInfo is a card of the inventory.
type cardInfo struct {
	ID     sched.GPUID
	UUID   uuid
	Name   string
	Driver string
	VRAM   uint64
	SMs    int
}

func (c cardInfo) device() *wire.Device {
	return &wire.Device{Driver: c.Driver, UUID: c.UUID, Name: c.Name, VRAMBytes: c.VRAM, Multiprocessors: c.SMs}
}

// softCards turns configuration into cards. A card keeps the UUID that it got
// when it was first seen (known, by id; new ones are added to it).
func softCards(soft []SoftGPU, known map[sched.GPUID]uuid) ([]cardInfo, error) {
	var cards []cardInfo
	seen := map[string]bool{}
	for _, g := range soft {
		if err := g.check(); err != nil {
			return nil, err
		}
		if seen[g.Name] {
			return nil, fmt.Errorf("two soft GPUs are called %q", g.Name)
		}
		seen[g.Name] = true
		id := sched.GPUID(g.Name)
		if _, ok := known[id]; !ok {
			known[id] = newUUID()
		}
		cards = append(cards, cardInfo{ID: id, UUID: known[id], Name: "Basalt Soft GPU", Driver: wire.DriverSoft, VRAM: g.VRAM, SMs: g.SMs})
	}
	return cards, nil
}
