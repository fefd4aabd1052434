package install

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/basalt-gpu/basalt/appliance/node/hostnet"
	"github.com/basalt-gpu/basalt/appliance/node/hostnet/trial"
	"github.com/basalt-gpu/basalt/installer/answers"
	"github.com/basalt-gpu/basalt/installer/machine/network"
	"sigs.k8s.io/yaml"
)

// Ports of a node: the API, the traffic between nodes, and the SSH gateway to
// instances.
const (
	APIPort  = "7480"
	PeerPort = "7481"
	SSHPort  = "2222"
)

// NoTimerCheck is a parameter of the kernel's command line (kernel-parameters.txt).
const NoTimerCheck = "no_timer_check"

// GuestTools is where the basalt-guest-tools package installs them.
const GuestTools = "/usr/share/basalt/guest-tools"

func hosts(name string) string {
	return "127.0.0.1 localhost\n127.0.1.1 " + name + "\n\n::1 localhost ip6-localhost ip6-loopback\nff02::1 ip6-allnodes\nff02::2 ip6-allrouters\n"
}

// declaration returns the node's network: the answers' own declaration, or one for its
// one or two cards. Its firewall is enabled unless the answers disable it.
func declaration(j Job) *hostnet.Network {
	w := j.Answers.Network
	if w.Declared != nil {
		n := *w.Declared
		if n.Firewall == nil {
			n.Firewall = &hostnet.Firewall{Enabled: true}
		}
		return &n
	}
	n := &hostnet.Network{Cards: []hostnet.Card{network.Card(j.Main.Card, j.Main.MAC, w.Path, w.Gateway, false)}, DNS: w.DNS, Firewall: &hostnet.Firewall{Enabled: true}}
	if j.Second != nil && w.Second != nil {
		n.Cards = append(n.Cards, network.Card(j.Second.Card, j.Second.MAC, *w.Second, netip.Addr{}, true))
	}
	if w.External {
		n.Share(&n.Cards[0])
	}
	return n
}

// networkFiles returns the files that configure the network from the first start on,
// and the declaration that people edit.
func networkFiles(j Job) []Action {
	n := declaration(j)
	text, dir := string(hostnet.Format(n)), strings.TrimPrefix(trial.System.Confirmed, "/")
	acts := []Action{
		Mkdir{"etc/basalt", 0o755}, Mkdir{dir, 0o755},
		Write{strings.TrimPrefix(hostnet.File, "/"), 0o644, text},
		Write{dir + "/" + trial.DeclarationFile, 0o644, text},
	}
	for _, f := range hostnet.Render(n) {
		acts = append(acts, Write{dir + "/" + f.Name, 0o644, f.Content})
	}
	return acts
}

// basaltd returns basaltd's configuration, whose keys are the names of its flags.
func basaltd(j Job) string {
	c := map[string]any{
		"listen":      "management:" + APIPort,
		"node-name":   j.Answers.Hostname,
		"peer-listen": "management:" + PeerPort,
		"setup":       "/etc/basalt/setup.yaml",
		"guest-tools": GuestTools,
		"network":     "ovn",
		"ssh-listen":  "management:" + SSHPort,
		// The node's journal is separate from the cluster's tables; an operator may add
		// a place with other administrators.
		"audit-anchor": []string{"syslog:"},
	}
	if j.Answers.AllowEmulation {
		c["allow-emulation"] = true
	}
	if j.Answers.SharedDir != "" {
		c["shared-dir"] = j.Answers.SharedDir
	}
	return "# Written by the installer: the names of basaltd's flags and their values.\n" +
		"# After a change: systemctl restart basaltd (running machines stay up).\n" + marshal(c)
}

func setup(c answers.Cluster) string {
	m := map[string]any{"cluster": "init", "name": c.Init}
	if c.Token != "" {
		m = map[string]any{"cluster": "join", "token": strings.Join(strings.Fields(c.Token), "")}
	}
	return "# Done once by basaltd, at its first start.\n" + marshal(m)
}

func marshal(v any) string {
	out, err := yaml.Marshal(v)
	if err != nil {
		panic("install: maps of strings always have a YAML form: " + err.Error())
	}
	return string(out)
}

// kernelArgs lists the screen first, then all existing serial ports, each with a login,
// and the chosen one last, so that it has the boot messages and the emergency login.
func kernelArgs(j Job) string {
	args := "console=tty0"
	if j.Answers.Serial != "" {
		chosen, _, _ := strings.Cut(j.Answers.Serial, ",")
		for _, port := range j.SerialPorts {
			if port != chosen {
				args += " console=" + serial(port)
			}
		}
		args += " console=" + serial(j.Answers.Serial)
	}
	if j.NoTimerCheck {
		args += " " + NoTimerCheck
	}
	return args
}

func serial(s string) string {
	if !strings.Contains(s, ",") {
		s += ",115200"
	}
	return s
}

// grubSerial returns GRUB's commands for a serial console that it supports.
func grubSerial(s string) string {
	port, speed, _ := strings.Cut(serial(s), ",")
	unit, ok := strings.CutPrefix(port, "ttyS")
	if s == "" || !ok {
		return ""
	}
	return "serial --unit=" + unit + " --speed=" + speed + "\n"
}

// grubConfig starts /vmlinuz, a link that Debian keeps pointing to the newest kernel.
func grubConfig(j Job) string {
	var b strings.Builder
	if s := grubSerial(j.Answers.Serial); s != "" {
		b.WriteString(s + "terminal_input console serial\nterminal_output console serial\n")
	}
	// Without a video driver, the kernel of a UEFI computer has no screen.
	b.WriteString("insmod all_video\nset gfxpayload=keep\n")
	root := "root=PARTUUID=" + j.IDs.RootPart
	if j.Mirror != nil {
		root = "root=LABEL=" + j.label()
	}
	fmt.Fprintf(&b, "set default=0\nset timeout=3\nsearch --no-floppy --fs-uuid --set=root %s\n\n", j.IDs.RootFS)
	fmt.Fprintf(&b, "menuentry \"Basalt\" {\n\tlinux /vmlinuz %s ro quiet loglevel=3 %s\n\tinitrd /initrd.img\n}\n", root, kernelArgs(j))
	fmt.Fprintf(&b, "menuentry \"Basalt, one-user rescue mode\" {\n\tlinux /vmlinuz %s ro systemd.unit=rescue.target %s\n\tinitrd /initrd.img\n}\n", root, kernelArgs(j))
	return b.String()
}

// grubDefaults returns the same settings for update-grub, which regenerates grub.cfg
// after an upgrade of the kernel.
func grubDefaults(j Job) string {
	s := "GRUB_DISTRIBUTOR=Basalt\nGRUB_TIMEOUT=3\nGRUB_DISABLE_OS_PROBER=true\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet loglevel=3\"\n" +
		"GRUB_CMDLINE_LINUX=\"" + kernelArgs(j) + "\"\n"
	if c := grubSerial(j.Answers.Serial); c != "" {
		s += "GRUB_TERMINAL=\"console serial\"\nGRUB_SERIAL_COMMAND=\"" + strings.TrimSpace(c) + "\"\n"
	}
	return s
}
