// Package cloudinit writes the discs that configure a guest: the NoCloud seed
// (label CIDATA) and the guest tools (label BASALT-TOOLS).
//
// User-data is passed on byte for byte. What Basalt adds is in the provider's
// part: the SSH keys and the name in meta-data, the network cards in
// network-config, the installation of the guest tools in vendor-data, which
// the user may disable (vendor_data: {enabled: false}).
package cloudinit

import (
	_ "embed" // of the unit
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing/fstest"
	"unicode"

	"github.com/basalt-gpu/basalt/api"
)

// Labels of the discs.
const (
	SeedLabel  = "CIDATA"
	ToolsLabel = "BASALT-TOOLS"
)

// Limits of what a user provides.
const (
	MaxUserData = 64 << 10
	MaxKeys     = 64
	maxKey      = 16 << 10
)

// Seed is one guest's configuration.
type Seed struct {
	// Instance is cloud-init's instance ID: when it changes, cloud-init
	// configures the guest again.
	Instance api.InstanceID
	Hostname string
	SSHKeys  []string // as in authorized_keys, for the image's default user
	// Authority is the public key of the CA whose certificates for this instance
	// the default user accepts; empty: none.
	Authority string
	UserData  string // of the user
	NICs      []NIC  // in the guest's order
}

// NIC is a network card of the guest, with the protocols that the guest uses
// DHCP for.
type NIC struct {
	MAC  string
	IPv4 bool
	IPv6 bool
}

var (
	hostForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`) // RFC 1123
	keyForm  = regexp.MustCompile(`^(ssh-|ecdsa-|sk-)[A-Za-z0-9@.-]+ [A-Za-z0-9+/]+={0,3}( .*)?$`)
)

// Validate returns what is wrong with the seed: an *api.Error, or nil.
func (s Seed) Validate() error {
	switch {
	case s.Instance == "":
		return api.Errorf(api.CodeInvalid, "the instance ID is missing").At("id")
	case !hostForm.MatchString(s.Hostname):
		return api.Errorf(api.CodeInvalid, "%q is not a valid host name, want 1 to 63 of a-z, 0-9 and '-'", s.Hostname).At("meta.name")
	case len(s.UserData) > MaxUserData:
		return api.Errorf(api.CodeTooLarge, "user data has %d bytes, want at most %d", len(s.UserData), MaxUserData).At("spec.userData")
	case len(s.SSHKeys) > MaxKeys:
		return api.Errorf(api.CodeTooLarge, "too many SSH keys, want at most %d", MaxKeys).At("spec.sshKeys")
	}
	if s.Authority != "" && !keyForm.MatchString(s.Authority) {
		return fmt.Errorf("seed of instance %s: %.40q is not the public key of a CA", s.Instance, s.Authority)
	}
	for _, k := range s.SSHKeys {
		k = strings.TrimSpace(k)
		if len(k) > maxKey || !keyForm.MatchString(k) || strings.ContainsFunc(k, unicode.IsControl) {
			return api.Errorf(api.CodeInvalid, "%.40q is not an SSH public key", k).WithHint("paste the line of a .pub file").At("spec.sshKeys")
		}
	}
	return nil
}

// Files returns the files of the seed disc (cloud-init's NoCloud reference,
// "file formats").
func (s Seed) Files() (fs.FS, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(s.SSHKeys))
	for _, k := range s.SSHKeys {
		keys = append(keys, strings.TrimSpace(k))
	}
	if s.Authority != "" {
		keys = append(keys, api.AuthorityLine(s.Authority, s.Instance))
	}
	meta, err := json.MarshalIndent(map[string]any{ // JSON is valid YAML, and quotes every string
		"instance-id": string(s.Instance), "local-hostname": s.Hostname, "public-keys": keys,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	user := s.UserData
	if user == "" {
		user = "#cloud-config\n{}\n"
	}
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text), Mode: 0o600} }
	files := fstest.MapFS{"meta-data": file(string(meta) + "\n"), "user-data": file(user), "vendor-data": file(VendorData())}
	if len(s.NICs) > 0 {
		network, err := s.network()
		if err != nil {
			return nil, err
		}
		files["network-config"] = file(string(network) + "\n")
	}
	return files, nil
}

// network returns the network-config ("networking config version 2"). Without
// it cloud-init chooses one card, once, early in the first boot, when it may
// not have appeared yet, and never requests an IPv6 address. cloud-init waits
// for cards that are named here.
func (s Seed) network() ([]byte, error) {
	cards := map[string]any{}
	for i, n := range s.NICs {
		name, card := fmt.Sprintf("eth%d", i), map[string]any{"match": map[string]any{"macaddress": n.MAC}}
		card["set-name"], card["dhcp4"], card["dhcp6"] = name, n.IPv4, n.IPv6
		for key, on := range map[string]bool{"dhcp4-overrides": n.IPv4, "dhcp6-overrides": n.IPv6} {
			if on {
				card[key] = map[string]any{"use-domains": true} // lets short names of neighbors resolve
			}
		}
		cards[name] = card
	}
	return json.MarshalIndent(map[string]any{"version": 2, "ethernets": cards}, "", "  ")
}

// Unit is the systemd unit that installs the guest tools at every boot with
// their disc attached.
//
//go:embed basalt-guest-tools.service
var Unit string

// VendorData returns a script that cloud-init runs once in a new guest: it
// adds the unit to images that lack it, and installs the tools in guests
// without systemd.
func VendorData() string {
	return `#!/bin/sh
# Basalt's guest tools, from the disc that Basalt attaches.
set -eu
disc=/dev/disk/by-label/` + ToolsLabel + `
[ -e "$disc" ] || exit 0
if [ -d /run/systemd/system ]; then
	unit=/etc/systemd/system/basalt-guest-tools.service
	if [ ! -e "$unit" ]; then
		cat >"$unit" <<'BASALT_UNIT'
` + Unit + `BASALT_UNIT
		systemctl daemon-reload
		systemctl -q enable basalt-guest-tools.service
	fi
	exec systemctl start basalt-guest-tools.service
fi
mnt=$(mktemp -d)
mount -o ro "$disc" "$mnt"
rc=0
sh "$mnt/install.sh" || rc=$?
umount "$mnt"
rmdir "$mnt"
exit $rc
`
}
