package deploy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// layout of a node's directory.
type layout string

func (l layout) conf() string           { return filepath.Join(string(l), "ceph.conf") }
func (l layout) monKeys() string        { return filepath.Join(string(l), "mon.keyring") }
func (l layout) mon() string            { return filepath.Join(string(l), "mon") }
func (l layout) mgr() string            { return filepath.Join(string(l), "mgr") }
func (l layout) osds() string           { return filepath.Join(string(l), "osd") }
func (l layout) osd(uuid string) string { return filepath.Join(l.osds(), uuid) }
func (l layout) run() string            { return filepath.Join(string(l), "run") }
func (l layout) keys(user string) string {
	return filepath.Join(string(l), "client."+user+".keyring")
}

// config is the node's ceph.conf, made anew from the intent. address is the
// node's own on the storage network.
func (in Intent) config(dir layout, node string, address netip.Addr) string {
	chooseleaf := "1" // host
	if in.FailureDomain == "osd" {
		chooseleaf = "0"
	}
	var mons []string
	for _, m := range in.Mons {
		mons = append(mons, msgr2(m.Address))
	}
	settings := map[string]string{
		"fsid":     in.FSID,
		"mon_host": strings.Join(mons, ","),
		"keyring":  string(dir) + "/$name.keyring",
		// By its pid: many programs of one name run at the same time.
		"admin_socket": dir.run() + "/$name.$pid.asok",
		"run_dir":      dir.run(), "crash_dir": dir.run(), "pid_file": "",
		// Whoever runs a daemon keeps what it says.
		"log_to_file": "false", "log_to_stderr": "true", "err_to_stderr": "true",
		"mon_cluster_log_to_file": "false", "mon_cluster_log_to_stderr": "false",
		"ms_bind_msgr1": "false", "ms_bind_msgr2": "true",
		"auth_cluster_required": "cephx", "auth_service_required": "cephx", "auth_client_required": "cephx",
		"auth_allow_insecure_global_id_reclaim": "false",
		"mgr_initial_modules":                   "", // none that listens to anybody
		"osd_crush_chooseleaf_type":             chooseleaf,
		"osd_memory_target":                     fmt.Sprint(cmp.Or(in.OSDMemoryBytes, 4<<30)),
		"rbd_default_features":                  "61", // layering, exclusive-lock, object-map, fast-diff, deep-flatten
	}
	if address.IsValid() {
		settings["public_addr"] = address.String()
		settings["ms_bind_ipv4"], settings["ms_bind_ipv6"] = fmt.Sprint(address.Is4()), fmt.Sprint(address.Is6())
	}
	maps.Copy(settings, in.Settings)
	var b strings.Builder
	b.WriteString("# Made by Basalt, and made anew when the cluster changes.\n[global]\n")
	for _, k := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = %s\n", k, settings[k])
	}
	// Only programs that have started may leave sockets: there is one for each
	// process, and a client's is nobody's.
	b.WriteString("[client]\nadmin_socket =\n")
	fmt.Fprintf(&b, "[mon]\nmon_data = %s\nkeyring = %s/keyring\n", dir.mon(), dir.mon())
	fmt.Fprintf(&b, "[mgr]\nmgr_data = %s\nkeyring = %s/keyring\n", dir.mgr(), dir.mgr())
	fmt.Fprintf(&b, "[osd]\ncrush_location = root=default host=%s\n", node)
	return b.String()
}
