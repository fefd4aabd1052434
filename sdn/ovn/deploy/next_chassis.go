package deploy

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// silent is after how long a server that was not heard from counts as down.
const silent = 30 * time.Second

// Bridges of Basalt.
const (
	Integration = "br-int"
	Underlay    = "br-encap"
)

// externalBridge returns the bridge of a physical network. A device's name has
// at most 15 bytes; a long one ends with a hash.
func externalBridge(physical string) string {
	if len(physical) <= 12 {
		return "bx-" + physical
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(physical)) // never fails
	return fmt.Sprintf("bx-%s%08x", physical[:4], sum.Sum32())
}

// datapath returns the node's datapath. Auto keeps the present one: a kernel
// without the module must not silently move the node to the slow one.
func (n *next) datapath() Datapath {
	if c := n.o.Switch.Configured; c != nil && n.Datapath != System && n.Datapath != Netdev {
		if b, ok := c.Bridges[Integration]; ok {
			return normal(b.Datapath)
		}
	}
	switch {
	case n.Datapath == System || n.Datapath == Netdev:
		return n.Datapath
	case n.o.Switch.Kernel:
		return System
	}
	return Netdev
}

func (n *next) openvswitch() {
	o := n.o.Switch
	if n.datapath() == System && !o.Kernel {
		n.problem(PartSwitch, "install the kernel's openvswitch module, or choose the userspace datapath",
			"the kernel has no openvswitch module")
		return
	}
	if o.Unmanaged {
		if o.Configured == nil {
			n.problem(PartSwitch, "systemctl status openvswitch-switch", "the Open vSwitch service of this machine is not responding")
			return
		}
	} else {
		n.localDaemons()
	}
	if o.Configured == nil && o.DB {
		n.problem(PartSwitch, "", "the Open vSwitch database is not responding")
	}
	if o.Outdated {
		n.add(Action{Part: PartSwitch, Verb: Convert})
	}
	n.configure()
}

// localDaemons runs Open vSwitch's daemons if the distribution does not.
func (n *next) localDaemons() {
	o, file, run := n.o.Switch, n.paths.local(), n.paths.OVSRun
	if o.File == Broken && !o.DB {
		n.problem(PartSwitch, "check this node's disk if it happens again", "the Open vSwitch database is damaged and is recreated")
		n.add(Action{Part: PartSwitch, Verb: SetAside, File: file})
		o.File = Absent
	}
	if o.File == Absent {
		// A server whose file was removed writes to a file that cannot be opened any
		// more.
		n.add(Action{Part: PartSwitch, Verb: Stop, Name: "ovs-db"})
		n.add(Action{Part: PartSwitch, Verb: CreateLocal, File: file})
	}
	server := append(n.env("/usr/sbin/ovsdb-server"), quiet...)
	n.add(Action{Part: PartSwitch, Verb: Run, Name: "ovs-db", Argv: append(server, "--remote=punix:"+run+"/db.sock",
		"--pidfile="+run+"/ovsdb-server.pid", "--unixctl="+run+"/ovsdb-server.ctl", file)})
	daemon := append(n.env("/usr/sbin/ovs-vswitchd"), quiet...)
	n.add(Action{Part: PartSwitch, Verb: Run, Name: "ovs-vswitchd", Argv: append(daemon,
		"--pidfile="+run+"/ovs-vswitchd.pid", "--unixctl="+run+"/ovs-vswitchd.ctl", "unix:"+run+"/db.sock")})
}

// configure configures Open vSwitch: one transaction with the differences.
func (n *next) configure() {
	datapath := n.datapath()
	have := Configured{}
	if n.o.Switch.Configured != nil {
		have = *n.o.Switch.Configured
	}
	var argv []string
	say := func(words ...string) {
		if len(argv) > 0 {
			argv = append(argv, "--")
		}
		argv = append(argv, words...)
	}
	bridge := func(name string, secure bool, ports ...string) {
		b, ok := have.Bridges[name]
		if !ok || normal(b.Datapath) != datapath || b.Secure != secure {
			mode := "standalone"
			if secure {
				mode = "secure"
			}
			say("--may-exist", "add-br", name)
			say("set", "Bridge", name, "datapath_type="+string(datapath), "fail_mode="+mode, "other_config:disable-in-band=true")
		}
		for _, p := range ports {
			if !slices.Contains(b.Ports, p) {
				say("--may-exist", "add-port", name, p)
			}
		}
	}
	want := map[string]string{
		"system-id": n.Node, "ovn-bridge": Integration, "ovn-bridge-datapath-type": string(datapath),
		"ovn-encap-type": "geneve", "ovn-encap-ip": n.Encap.Unmap().WithZone("").String(),
		"ovn-bridge-mappings": n.mappings(),
		// The switch's own probe of its controller; the interval is long, because
		// both are on this node.
		"ovn-openflow-probe-interval": "60", "ovn-remote-probe-interval": "10000", // s, ms
	}
	if n.Bootstrap.founded(SB) && len(n.Members) > 0 {
		want["ovn-remote"] = n.remote(SB, n.paths.Run)
	}
	for _, key := range sorted(want) {
		switch value := want[key]; value {
		case have.ExternalIDs[key]:
		case "":
			say("remove", "Open_vSwitch", ".", "external_ids", key)
		default:
			say("set", "Open_vSwitch", ".", fmt.Sprintf("external_ids:%s=%q", key, value))
		}
	}
	bridge(Integration, true)
	for _, physical := range sorted(n.External) {
		if n.usable(physical) {
			bridge(externalBridge(physical), false, n.External[physical])
		}
	}
	moved := datapath == Netdev && n.underlayUsable()
	if moved {
		bridge(Underlay, false, n.Underlay)
	}
	if len(argv) > 0 {
		n.add(Action{Part: PartSwitch, Verb: Configure, Argv: argv})
	}
	if moved {
		if len(n.o.Switch.Links[n.Underlay].Addresses) > 0 || !n.o.Switch.Links[Underlay].Up {
			n.add(Action{Part: PartSwitch, Verb: Move, ID: n.Underlay, Addr: Underlay})
		}
	}
	if datapath == Netdev {
		n.disableOffload()
	}
	for name, b := range have.Bridges {
		if b.Error != "" {
			n.problem(PartSwitch, "", "bridge %s: %s", name, b.Error)
		}
	}
}

// disableOffload turns checksum offload off: a userspace switch does not
// complete checksums.
func (n *next) disableOffload() {
	for _, name := range sorted(n.o.Switch.Links) {
		if n.o.Switch.Links[name].Offload {
			n.add(Action{Part: PartSwitch, Verb: DisableOffload, ID: name})
		}
	}
}

func normal(d string) Datapath {
	if d == "" {
		return System
	}
	return Datapath(d)
}

// mappings returns the mappings of usable physical networks to bridges.
func (n *next) mappings() string {
	var all []string
	for _, physical := range sorted(n.External) {
		if n.usable(physical) {
			all = append(all, physical+":"+externalBridge(physical))
		}
	}
	return strings.Join(all, ",")
}

// usable reports whether a physical network's interface exists and has no
// other use; the first call adds a problem if not.
func (n *next) usable(physical string) bool {
	name := n.External[physical]
	link, ok := n.o.Switch.Links[name]
	switch {
	case !ok:
		n.once("choose another interface, or install it", "external network %s: interface %s does not exist", physical, name)
		return false
	case len(link.Addresses) > 0:
		n.once("use a separate interface for the external network", "external network %s: interface %s has addresses of this node (%s)",
			physical, name, strings.Join(link.Addresses, ", "))
		return false
	}
	return true
}

func (n *next) once(next, what string, args ...any) {
	p := Problem{Part: PartSwitch, What: fmt.Sprintf(what, args...), Next: next}
	if !slices.Contains(n.problems, p) {
		n.problems = append(n.problems, p)
	}
}

func (n *next) underlayUsable() bool {
	if n.Underlay == "" {
		return false
	}
	link, ok := n.o.Switch.Links[n.Underlay]
	switch {
	case !ok:
		n.once("choose another interface", "interface %s for the tunnels does not exist", n.Underlay)
		return false
	case link.Default:
		n.once("use a separate interface for the tunnels", "interface %s has the default route and cannot be used for the tunnels", n.Underlay)
		return false
	}
	return true
}

// northd runs ovn-northd on every member; one is active, the others stand by.
func (n *next) northd() {
	if n.Bootstrap.Generation == 0 || len(n.Members) == 0 {
		return
	}
	_, member := n.member(n.Node)
	founded := n.Bootstrap.NB != "" && n.Bootstrap.SB != "" || !n.Bootstrap.Clustered && n.Bootstrap.Founder == n.Node
	if !member || !founded {
		if n.o.Northd {
			n.add(Action{Part: PartNorthd, Verb: Stop, Name: "ovn-northd"})
		}
		return
	}
	argv := append(n.client("/usr/bin/ovn-northd"), "--pidfile="+n.paths.Run+"/ovn-northd.pid", "--unixctl="+n.paths.Run+"/ovn-northd.ctl",
		"--ovnnb-db="+n.remote(NB, n.paths.Run), "--ovnsb-db="+n.remote(SB, n.paths.Run))
	if n.Bootstrap.Clustered {
		argv = append(argv, n.TLS.args()...)
	}
	n.add(Action{Part: PartNorthd, Verb: Run, Name: "ovn-northd", Argv: argv})
}

// chassis runs ovn-controller. Stopping it keeps the switch's flows.
func (n *next) chassis() {
	if n.Bootstrap.Generation == 0 || len(n.Members) == 0 {
		n.problem(PartChassis, "", "waiting for the choice of the nodes that run the OVN databases")
		return
	}
	if n.Bootstrap.Clustered && !n.TLS.on() {
		n.problem(PartChassis, "give this node a certificate of the cluster", "ovn-controller needs a certificate")
		return
	}
	if !n.Bootstrap.founded(SB) {
		n.problem(PartChassis, "", "waiting for node %s to create the southbound database", n.Bootstrap.Founder)
		return // a running one keeps its flows
	}
	argv := append(n.client("/usr/bin/ovn-controller"), "--pidfile="+n.paths.Run+"/ovn-controller.pid")
	if n.Bootstrap.Clustered {
		argv = append(argv, n.TLS.args()...)
	}
	n.add(Action{Part: PartChassis, Verb: Run, Name: "ovn-controller", Argv: append(argv, "unix:"+n.paths.OVSRun+"/db.sock")})
	if n.o.Controller && !n.o.Connected {
		n.problem(PartChassis, "check that the members are reachable from this node", "ovn-controller cannot reach a southbound database; existing configuration keeps working")
	}
}
