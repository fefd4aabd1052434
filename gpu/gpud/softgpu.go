package gpud

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/basalt-gpu/basalt/gpu/soft/model"
)

// SoftGPU configures a card that is emulated on CPUs.
type SoftGPU struct {
	Name string // unique on the node
	VRAM uint64 // bytes
	// Model is the model that the card presents itself as, by its name in
	// gpu/soft/model; empty: none.
	Model string
	SMs   int // multiprocessors
	// Capability is the compute capability that the card reports: 90 is 9.0; 0: the
	// model's.
	Capability int
	// Fault is an injected fault, for tests and demonstrations.
	Fault model.Fault
	// Check lists the checks that the card performs on kernels, such as
	// "memory,race,init".
	Check string
	// Engine is how the card executes instructions.
	Engine model.Engine
}

// NullGPU configures a card that computes nothing, for measurements and tests of
// everything in front of a card.
type NullGPU SoftGPU

// Limits of a soft or null GPU, so that mistyped values are reported.
const (
	minSoftVRAM = 16 << 20
	maxSoftVRAM = 4 << 40
	maxSoftSMs  = 1024
)

// madeSMs is the number of multiprocessors of a card without a model.
const madeSMs = 4

// ParseSoftGPU parses "name=soft0,vram=8GiB,model=a100,sms=4,cc=9.0". Only vram is required;
// a card without a name is named by index.
func ParseSoftGPU(s string, index int) (SoftGPU, error) { return parseMade("soft", s, index) }

// ParseNullGPU parses the same for a null GPU; without a name it is null0, null1,
// ….
func ParseNullGPU(s string, index int) (NullGPU, error) {
	g, err := parseMade("null", s, index)
	return NullGPU(g), err
}

func parseMade(kind, s string, index int) (SoftGPU, error) {
	g := SoftGPU{Name: kind + strconv.Itoa(index)}
	var key string
	for _, part := range strings.Split(s, ",") {
		name, value, ok := strings.Cut(part, "=")
		if !ok && key == "check" { // another check
			name, value, ok = key, g.Check+","+part, true
		}
		if key = name; !ok {
			return SoftGPU{}, fmt.Errorf("%s GPU %q: want name=…,vram=…,model=…,sms=…,cc=…", kind, s)
		}
		var err error
		switch key {
		case "name":
			g.Name = value
		case "vram":
			g.VRAM, err = ParseSize(value)
		case "model":
			g.Model = strings.ToLower(value)
		case "sms":
			g.SMs, err = parseSMs(value)
		case "cc":
			g.Capability, err = parseCapability(value)
		case "check":
			g.Check = value
		case "fault":
			g.Fault = model.Fault(value)
		case "engine":
			g.Engine = model.Engine(value)
		default:
			err = fmt.Errorf("unknown key %q: want name, vram, model, sms, cc, check, engine or fault", key)
		}
		if err != nil {
			return SoftGPU{}, fmt.Errorf("%s GPU %q: %w", kind, s, err)
		}
	}
	m, err := model.Find(g.Model)
	if err != nil {
		return SoftGPU{}, fmt.Errorf("%s GPU %q: %w", kind, s, err)
	}
	g.SMs = cmp.Or(g.SMs, m.Multiprocessors, madeSMs)
	return g, g.check(kind)
}

func parseSMs(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxSoftSMs {
		return 0, fmt.Errorf("sms is %q, want a number from 1 to %d", s, maxSoftSMs)
	}
	return n, nil
}

// parseCapability parses a compute capability such as 9.0.
func parseCapability(s string) (int, error) {
	major, minor, ok := strings.Cut(s, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if !ok || err != nil || err2 != nil || a < 5 || a > 12 || b < 0 || b > 9 {
		return 0, fmt.Errorf("cc is %q, want a compute capability from 5.0 to 12.9, as in cc=9.0", s)
	}
	return 10*a + b, nil
}

func (g SoftGPU) check(kind string) error {
	if _, err := model.Find(g.Model); err != nil {
		return fmt.Errorf("%s GPU %s: %w", kind, g.Name, err)
	}
	if _, err := model.ParseChecks(g.Check); err != nil {
		return fmt.Errorf("%s GPU %s: %w", kind, g.Name, err)
	}
	if err := g.Fault.Check(); err != nil {
		return fmt.Errorf("%s GPU %s: %w", kind, g.Name, err)
	}
	if err := g.Engine.Check(); err != nil {
		return fmt.Errorf("%s GPU %s: %w", kind, g.Name, err)
	}
	switch {
	case (g.Capability != 0 || g.Model != "" || g.Fault != "" || g.Check != "" || g.Engine != "") && kind != "soft":
		return fmt.Errorf("%s GPU %s: model, cc, check, engine and fault are supported only for soft GPUs", kind, g.Name)
	case !validCardName(g.Name):
		return fmt.Errorf("%s GPU %q: invalid name, want 1 to 32 letters, digits, '-', '_' or '.'", kind, g.Name)
	case g.VRAM < minSoftVRAM || g.VRAM > maxSoftVRAM:
		return fmt.Errorf("%s GPU %s: vram is out of range, want %s to %s, e.g. vram=8GiB", kind, g.Name, FormatSize(minSoftVRAM), FormatSize(maxSoftVRAM))
	case g.SMs < 1 || g.SMs > maxSoftSMs:
		return fmt.Errorf("%s GPU %s: sms is out of range, want 1 to %d", kind, g.Name, maxSoftSMs)
	}
	return nil
}

func validCardName(s string) bool {
	if len(s) < 1 || len(s) > 32 {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == ""
}
