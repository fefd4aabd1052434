package gpud

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// busCard is an NVIDIA card that the kernel has found on the PCI bus, with or
// without a driver.
type busCard struct {
	address string // as 0000:65:00.0
	driver  string // the kernel driver that is bound to it; empty: none
}

const (
	vendorNVIDIA = "0x10de"
	classDisplay = "0x03" // PCI base class: VGA and 3D controllers
)

// busCards lists the NVIDIA cards below sysfs (Documentation/ABI/testing/sysfs-bus-pci
// in the kernel's tree), without virtual functions. A machine without a PCI bus has none.
func busCards(sysfs string) (cards []busCard, err error) {
	devices := filepath.Join(sysfs, "bus/pci/devices")
	entries, err := os.ReadDir(devices)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		dir := filepath.Join(devices, e.Name())
		if attribute(dir, "vendor") != vendorNVIDIA || !strings.HasPrefix(attribute(dir, "class"), classDisplay) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, "physfn")); err == nil {
			continue
		}
		c := busCard{address: e.Name()}
		if to, err := os.Readlink(filepath.Join(dir, "driver")); err == nil {
			c.driver = filepath.Base(to)
		}
		cards = append(cards, c)
	}
	return cards, nil
}

// attribute returns an attribute of a device, or an empty string when the device
// has been removed.
func attribute(dir, name string) string {
	b, _ := os.ReadFile(filepath.Join(dir, name))
	return strings.TrimSpace(string(b))
}
