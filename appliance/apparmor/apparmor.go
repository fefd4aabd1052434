// Package apparmor starts programs under the AppArmor profiles of the package basalt
// (installer/deb/basalt/root/usr/share/basalt/apparmor). Where AppArmor is off, or a profile is not
// loaded, the program runs as it would without AppArmor.
//
// Profiles are not attached to paths: administrators run the same programs with rights of
// their own (qemu-img), and a program that is not the installed one needs other files. So
// whoever starts a program names its profile, and setpriv(1), which is installed
// everywhere, requests it for the exec (aa_change_onexec(2)).
package apparmor

import (
	"os"
	"regexp"
)

// Profile names an AppArmor profile of the package basalt.
type Profile string

// The profiles.
const (
	Image  Profile = "basalt-image"  // programs of QEMU that read images of users
	VGPU   Profile = "basalt-vgpu"   // basalt-vgpu
	Worker Profile = "basalt-worker" // basalt-worker; the profile of basalt-vgpu changes to it
)

// Profiles returns all profiles.
func Profiles() []Profile { return []Profile{Image, VGPU, Worker} }

// Loaded is the kernel's list of loaded profiles. Only root can read it.
const Loaded = "/sys/kernel/security/apparmor/profiles"

// loaded is Loaded; tests replace it.
var loaded = Loaded

// Enforced is the mode of a profile that denies what it does not allow.
const Enforced = "enforce"

var line = regexp.MustCompile(`(?m)^(basalt-[a-z]+) \(([a-z]+)\)$`)

// Modes returns the mode of each profile of the package in the kernel's list. One that is
// not loaded has none.
func Modes(list string) map[Profile]string {
	modes := map[Profile]string{}
	for _, m := range line.FindAllStringSubmatch(list, -1) {
		modes[Profile(m[1])] = m[2]
	}
	return modes
}

// Setpriv returns the option of setpriv(1) that has it execute a program under the
// profile, or none if the profile is not loaded.
func (p Profile) Setpriv() []string {
	list, err := os.ReadFile(loaded)
	if err != nil || Modes(string(list))[p] == "" {
		return nil
	}
	return []string{"--apparmor-profile=" + string(p)}
}

// Command returns the command line that executes a program under the profile, or the
// program's own if the profile is not loaded. The process is the same one that is started.
func (p Profile) Command(argv ...string) []string {
	if option := p.Setpriv(); option != nil {
		return append(append([]string{"setpriv"}, option...), argv...)
	}
	return argv
}
