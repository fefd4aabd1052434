package hardware

import (
	"fmt"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/apparmor"
)

// loader is the link that makes systemd load the profiles at boot.
const loader = "etc/systemd/system/multi-user.target.wants/basalt-apparmor.service"

// appArmor checks that the profiles of Basalt's programs are enforced, if the kernel has
// AppArmor on and the node loads them.
func appArmor(f Facts) api.HardwareCheck {
	const id = api.HardwareAppArmor
	if line(f.FS, "sys/module/apparmor/parameters/enabled") != "Y" {
		return ok(id, "AppArmor is off")
	}
	if !exists(f.FS, loader) {
		return ok(id, "AppArmor is on; basalt-apparmor.service, which loads the profiles, is not enabled")
	}
	file, err := f.FS.Open(apparmor.Loaded[1:])
	if err != nil {
		return unknown(id, fmt.Sprintf("the list of profiles cannot be read: %v", err), "Run it as root.")
	}
	_ = file.Close()
	modes := apparmor.Modes(read(f.FS, apparmor.Loaded[1:]))
	var bad []string
	for _, p := range apparmor.Profiles() {
		switch mode := modes[p]; mode {
		case apparmor.Enforced:
		case "":
			bad = append(bad, string(p)+" is not loaded")
		default:
			bad = append(bad, string(p)+" is in mode "+mode)
		}
	}
	if len(bad) > 0 {
		return warning(id, few(bad), "Programs that handle hostile input are not confined by AppArmor, only by their users, namespaces and system calls.",
			"Install the package apparmor, remove links to these profiles in /etc/apparmor.d/disable and force-complain, and restart basalt-apparmor.service.")
	}
	return ok(id, fmt.Sprintf("%d profiles are enforced", len(apparmor.Profiles())))
}
