package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) networks() *kind[api.Network] {
	return &kind[api.Network]{
		app: a, noun: "network", about: "Private networks of a project",
		more:    []*cobra.Command{a.traceCommand()},
		columns: []string{"PHASE", "IPV4", "IPV6", "EXTERNAL ACCESS", "NOTE"},
		row: func(n api.Network) []string {
			out := "router"
			if n.Spec.Isolated {
				out = "none"
			}
			return []string{networkPhase(n.Status.Phase), n.Spec.Cidr4, n.Spec.Cidr6, out, n.Status.LastError}
		},
		detail: func(n api.Network) (d detail) {
			d.add("Gateway", strings.TrimSpace(n.Assignment.Gateway4+" "+n.Assignment.Gateway6))
			d.add("Resolvers", strings.Join(n.Spec.DNSServers, " "))
			d.add("MTU", fmt.Sprint(cmp.Or(n.Spec.Mtu, api.DefaultMTU), " bytes"))
			return d
		},
		flags: func(f *pflag.FlagSet) func(*api.Network) error {
			cidr4 := f.String("cidr4", "", "IPv4 range, e.g. 10.20.0.0/24")
			cidr6 := f.String("cidr6", "", "IPv6 range, a /64")
			dns := f.StringSlice("dns", nil, "DNS servers, comma-separated")
			isolated := f.Bool("isolated", false, "isolated: no router, no traffic in or out")
			mtu := f.Int64("mtu", 0, "MTU in bytes; default: 1442")
			return func(n *api.Network) error {
				s := &n.Spec
				s.Cidr4, s.Cidr6, s.Mtu = cmp.Or(*cidr4, s.Cidr4), cmp.Or(*cidr6, s.Cidr6), cmp.Or(*mtu, s.Mtu)
				if f.Changed("dns") {
					s.DNSServers = *dns
				}
				if f.Changed("isolated") {
					s.Isolated = *isolated
				}
				return nil
			}
		},
	}
}

// traceCommand exits with 1 when the packet does not arrive.
func (a *App) traceCommand() *cobra.Command {
	return &cobra.Command{
		Use: "trace FROM TO PACKET", Short: "Trace a packet: where it goes, or what drops it",
		Long: "FROM and TO are instances or addresses. PACKET is the first packet of a connection:\ntcp/443, udp/53, icmp or icmp6.",
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := a.api.TraceNetwork(cmd.Context(), args[0], args[1], args[2], a.config.Project)
			if err != nil {
				return err
			}
			if a.flags.output != "table" {
				return a.print(t, nil)
			}
			for _, line := range t.Lines {
				fmt.Fprintln(a.Out, printable(line))
			}
			if !t.Passes {
				return exitCode(1)
			}
			return nil
		},
	}
}

func networkPhase(p api.NetworkPhase) string { return string(cmp.Or(p, api.NetworkPending)) }

func (a *App) securityGroups() *kind[api.SecurityGroup] {
	return &kind[api.SecurityGroup]{
		app: a, noun: "security-group", aliases: []string{"sg"},
		about:   "Firewall rules for instances",
		columns: []string{"RULES"}, refs: []api.Kind{api.KindSecurityGroup},
		row: func(g api.SecurityGroup) []string { return []string{fmt.Sprint(len(g.Spec.Rules))} },
		detail: func(g api.SecurityGroup) (d detail) {
			for _, r := range g.Spec.Rules {
				d.add("Allow", a.ruleText(g.Meta.ID, r))
			}
			return d
		},
		flags: func(f *pflag.FlagSet) func(*api.SecurityGroup) error {
			allow := f.StringArray("allow", nil, `"ingress tcp 443 from 0.0.0.0/0", "ingress any from group web", "egress any"; repeatable; replaces the previous rules`)
			return func(g *api.SecurityGroup) error {
				if !f.Changed("allow") {
					return nil
				}
				g.Spec.Rules = []api.SecurityRule{}
				for _, text := range *allow {
					r, err := parseRule(text)
					if err != nil {
						return err
					}
					g.Spec.Rules = append(g.Spec.Rules, r)
				}
				return nil
			}
		},
	}
}

// ruleText formats a rule as --allow accepts it.
func (a *App) ruleText(self string, r api.SecurityRule) string {
	words := []string{string(r.Direction), string(r.Protocol)}
	if r.Ports != "" {
		words = append(words, r.Ports)
	}
	at := "from"
	if r.Direction == api.Egress {
		at = "to"
	}
	switch {
	case string(r.Group) == self:
		words = append(words, at, "group", string(api.SelfGroup))
	case r.Group != "":
		words = append(words, at, "group", a.named(string(r.Group)))
	case r.Cidr != "":
		words = append(words, at, r.Cidr)
	}
	return strings.Join(words, " ")
}

// parseRule parses DIRECTION PROTOCOL [PORTS] [from|to CIDR | from|to group NAME].
func parseRule(text string) (api.SecurityRule, error) {
	bad := usageError{fmt.Errorf("%q is not a valid rule", text), `use e.g. "ingress tcp 443 from 0.0.0.0/0" or "egress any to group web"`}
	words := strings.Fields(text)
	if len(words) < 2 {
		return api.SecurityRule{}, bad
	}
	r := api.SecurityRule{Direction: api.Direction(words[0]), Protocol: api.Protocol(words[1])}
	words = words[2:]
	if len(words) > 0 && words[0] != "from" && words[0] != "to" {
		r.Ports, words = words[0], words[1:]
	}
	switch {
	case len(words) == 0:
	case len(words) == 2:
		r.Cidr = words[1]
	case len(words) == 3 && words[1] == "group":
		r.Group = api.SecurityGroupID(words[2])
	default:
		return r, bad
	}
	return r, nil
}

func (a *App) externalNetworks() *kind[api.ExternalNetwork] {
	return &kind[api.ExternalNetwork]{
		app: a, noun: "external-network", about: "External networks, used by routers and floating IPs",
		columns: []string{"PHASE", "IPV4", "IPV6", "VLAN", "DEFAULT", "NOTE"},
		row: func(n api.ExternalNetwork) []string {
			vlan, isDefault := "", ""
			if n.Spec.Vlan != 0 {
				vlan = fmt.Sprint(n.Spec.Vlan)
			}
			if n.Spec.Default {
				isDefault = "yes"
			}
			return []string{networkPhase(n.Status.Phase), n.Spec.Cidr4, n.Spec.Cidr6, vlan, isDefault, n.Status.LastError}
		},
		detail: func(n api.ExternalNetwork) (d detail) {
			d.add("Physical network", n.Spec.PhysicalNetwork)
			d.add("Gateway", strings.TrimSpace(n.Spec.Gateway4+" "+n.Spec.Gateway6))
			d.add("Assignable", strings.Join(append(n.Spec.Ranges4, n.Spec.Ranges6...), ", "))
			return d
		},
		flags: func(f *pflag.FlagSet) func(*api.ExternalNetwork) error {
			cable := f.String("physical-network", "", "physical network of the nodes; default: external")
			vlan := f.Int64("vlan", 0, "VLAN; 0: untagged")
			cidr4, cidr6 := f.String("cidr4", "", "IPv4 network"), f.String("cidr6", "", "IPv6 network")
			gw4, gw6 := f.String("gateway4", "", "IPv4 gateway"), f.String("gateway6", "", "IPv6 gateway")
			r4 := f.StringSlice("ranges4", nil, "assignable IPv4 addresses, FIRST-LAST, comma-separated")
			r6 := f.StringSlice("ranges6", nil, "assignable IPv6 addresses")
			isDefault := f.Bool("default", false, "default external network for routers and floating IPs")
			return func(n *api.ExternalNetwork) error {
				s := &n.Spec
				s.PhysicalNetwork = cmp.Or(*cable, s.PhysicalNetwork)
				s.Cidr4, s.Cidr6 = cmp.Or(*cidr4, s.Cidr4), cmp.Or(*cidr6, s.Cidr6)
				s.Gateway4, s.Gateway6 = cmp.Or(*gw4, s.Gateway4), cmp.Or(*gw6, s.Gateway6)
				if f.Changed("vlan") {
					s.Vlan = *vlan
				}
				if f.Changed("ranges4") {
					s.Ranges4 = *r4
				}
				if f.Changed("ranges6") {
					s.Ranges6 = *r6
				}
				if f.Changed("default") {
					s.Default = *isDefault
				}
				return nil
			}
		},
	}
}

func (a *App) routers() *kind[api.Router] {
	return &kind[api.Router]{
		app: a, noun: "router", about: "Project routers, which the cluster creates",

		refs:    []api.Kind{api.KindExternalNetwork, api.KindNode, api.KindProject},
		columns: []string{"PROJECT", "PHASE", "EXTERNAL NETWORK", "IPV4", "IPV6", "NODE", "NOTE"},
		row: func(r api.Router) []string {
			return []string{a.named(r.Meta.Project), networkPhase(r.Status.Phase), a.named(string(r.Spec.ExternalNetwork)), r.Assignment.Address4, r.Assignment.Address6,
				a.named(string(r.Status.Node)), cmp.Or(r.Assignment.Reason, r.Status.LastError)}
		},
	}
}

func (a *App) floatingIPs() *kind[api.FloatingIP] {
	return &kind[api.FloatingIP]{
		app: a, noun: "floating-ip", aliases: []string{"fip"}, about: "External addresses that can be attached to instances",

		refs:    []api.Kind{api.KindInstance, api.KindExternalNetwork},
		columns: []string{"ADDRESS", "PHASE", "INSTANCE", "OF", "NOTE"},
		row: func(f api.FloatingIP) []string {
			return []string{f.Assignment.Address, networkPhase(f.Status.Phase), a.named(string(f.Spec.Instance)), a.named(string(f.Spec.ExternalNetwork)),
				cmp.Or(f.Assignment.Reason, f.Status.LastError)}
		},
		flags: func(f *pflag.FlagSet) func(*api.FloatingIP) error {
			from := f.String("external-network", "", "external network; default: the default one")
			instance := f.String("instance", "", "attach to this instance")
			network := f.String("network", "", "network of the instance; default: its first")
			free := f.Bool("free", false, "detach from its instance")
			return func(o *api.FloatingIP) error {
				s := &o.Spec
				s.ExternalNetwork = cmp.Or(api.ExternalNetworkID(*from), s.ExternalNetwork)
				if *free {
					s.Instance, s.Network = "", ""
				}
				if *instance != "" {
					s.Instance, s.Network = api.InstanceID(*instance), ""
				}
				s.Network = cmp.Or(api.NetworkID(*network), s.Network)
				return nil
			}
		},
	}
}

func (a *App) loadBalancers() *kind[api.LoadBalancer] {
	return &kind[api.LoadBalancer]{
		app: a, noun: "load-balancer", aliases: []string{"lb"}, about: "Distribute connections to one address across several instances",

		refs:    []api.Kind{api.KindInstance, api.KindNetwork, api.KindFloatingIP},
		columns: []string{"PHASE", "ADDRESS", "PORT", "BACKENDS", "NETWORK", "FLOATING IP", "NOTE"},
		row: func(l api.LoadBalancer) []string {
			backends := fmt.Sprint(len(l.Spec.Backends))
			if l.Spec.Health {
				backends = fmt.Sprintf("%d of %d up", l.Status.BackendsUp, len(l.Spec.Backends))
			}
			return []string{networkPhase(l.Status.Phase), l.Assignment.Address, fmt.Sprintf("%s/%d", l.Spec.Protocol, l.Spec.Port), backends,
				a.named(string(l.Spec.Network)), a.named(string(l.Spec.FloatingIP)), cmp.Or(l.Assignment.Reason, l.Status.LastError)}
		},
		detail: func(l api.LoadBalancer) (d detail) {
			for _, b := range l.Spec.Backends {
				d.add("Backend", fmt.Sprintf("%s port %d", a.named(string(b.Instance)), b.Port))
			}
			return d
		},
		flags: loadBalancerFlags,
	}
}

func loadBalancerFlags(f *pflag.FlagSet) func(*api.LoadBalancer) error {
	network := f.String("network", "", "network, name or ID; default: the one named default")
	protocol := f.String("protocol", "", "tcp or udp; default: tcp")
	port := f.Int64("port", 0, "the port that it listens on")
	backends := f.StringArray("backend", nil, "INSTANCE:PORT, repeatable; replaces the previous ones")
	none := f.Bool("no-backends", false, "remove all backends")
	health := f.Bool("health", false, "enable health checks: skip backends that do not respond")
	inside := f.Bool("inside", false, "internal only, without a floating IP")
	fip := f.String("floating-ip", "", "external address of the load balancer")
	return func(l *api.LoadBalancer) error {
		s := &l.Spec
		s.Network = cmp.Or(api.NetworkID(*network), s.Network, api.DefaultName)
		s.Protocol = cmp.Or(api.Protocol(*protocol), s.Protocol, api.ProtocolTCP)
		s.Port = cmp.Or(*port, s.Port)
		s.FloatingIP = cmp.Or(api.FloatingIPID(*fip), s.FloatingIP)
		if *inside {
			s.FloatingIP = ""
		}
		if f.Changed("health") {
			s.Health = *health
		}
		if !f.Changed("backend") && !*none {
			return nil
		}
		s.Backends = nil
		for _, text := range *backends {
			instance, number, _ := strings.Cut(text, ":")
			p, _, err := api.ParsePorts(number)
			if err != nil || instance == "" {
				return usageError{fmt.Errorf("%q is not a valid backend", text), "use INSTANCE:PORT"}
			}
			s.Backends = append(s.Backends, api.LoadBalancerBackend{Instance: api.InstanceID(instance), Port: int64(p)})
		}
		return nil
	}
}

// networkFlags declares the flags for an instance's networks.
func networkFlags(f *pflag.FlagSet) func(*api.InstanceSpec) error {
	networks := f.StringArray("network", nil, "NETWORK, or NETWORK,ADDRESS for a fixed address; repeatable; default: the project's default network")
	groups := f.StringSlice("security-group", nil, "security groups of its ports; default: the project's default security group")
	return func(s *api.InstanceSpec) error {
		if f.Changed("network") {
			s.Networks = nil
			for _, text := range *networks {
				words := strings.Split(text, ",")
				n := api.InstanceNetwork{Network: api.NetworkID(words[0])}
				for _, address := range words[1:] {
					if strings.Contains(address, ":") {
						n.Address6 = address
					} else {
						n.Address4 = address
					}
				}
				s.Networks = append(s.Networks, n)
			}
		}
		if !f.Changed("security-group") {
			return nil
		}
		if len(s.Networks) == 0 {
			s.Networks = []api.InstanceNetwork{{Network: api.DefaultName}}
		}
		for i := range s.Networks {
			s.Networks[i].SecurityGroups = nil
			for _, g := range *groups {
				s.Networks[i].SecurityGroups = append(s.Networks[i].SecurityGroups, api.SecurityGroupID(g))
			}
		}
		return nil
	}
}

// addressesOf adds the addresses of an instance to its detail.
func (a *App) addressesOf(d *detail, i api.Instance) {
	for _, p := range i.Assignment.Ports {
		d.add("Address", strings.TrimSpace(fmt.Sprintf("%s %s", p.Address4, p.Address6))+", network "+a.named(string(p.Network))+", MAC "+p.Mac)
	}
}
