package hardware

import (
	"errors"
	"strings"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/node/bootloader"
)

// bootLoaders checks that the node can start from each of its disks, with the installed
// GRUB.
func bootLoaders(f Facts) api.HardwareCheck {
	const (
		id     = api.HardwareBootLoader
		repair = "Run basaltd boot-loader update on the node; its output says what fails."
	)
	if errors.Is(f.BootLoader.Err, bootloader.ErrNone) {
		return ok(id, "not installed by Basalt's installer")
	}
	if f.BootLoader.Err != nil {
		return unknown(id, f.BootLoader.Err.Error(), "Run the check as root.")
	}
	byKind := map[bootloader.Kind][]string{}
	for _, fault := range bootloader.Faults(f.BootLoader.State) {
		byKind[fault.Kind] = append(byKind[fault.Kind], fault.String())
	}
	if broken := byKind[bootloader.Broken]; len(broken) > 0 {
		return failed(id, few(broken), "The node may not start from this disk.", repair)
	}
	if old := byKind[bootloader.Old]; len(old) > 0 {
		return warning(id, few(old), "The node starts, but without the corrections of the installed GRUB.", repair)
	}
	if lacking := byKind[bootloader.NoEntry]; len(lacking) > 0 {
		return warning(id, few(lacking), "The firmware finds the disk only by its place in its own order.", repair)
	}
	if unread := byKind[bootloader.Unknown]; len(unread) > 0 {
		return unknown(id, few(unread), "Run the check as root; dmesg shows errors of the disk.")
	}
	var names []string
	for _, d := range f.BootLoader.State.Disks {
		names = append(names, d.Name)
	}
	return ok(id, "GRUB is current on "+strings.Join(names, ", "))
}
