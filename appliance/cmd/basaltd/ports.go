package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"text/tabwriter"

	"github.com/basalt-gpu/basalt/appliance/node/firewall"
)

// showPorts prints what listens on this machine, and which packets its firewall accepts.
func showPorts(ctx context.Context, c config, out io.Writer) error {
	n, onTrial, err := inForce(c)
	if err != nil {
		return fmt.Errorf("declared network: %w", err)
	}
	rules, links := firewallRules(c, n)
	loaded := ""
	if links != nil {
		if loaded, err = firewall.System.InForce(ctx); err != nil {
			return fmt.Errorf("read the firewall rules in force: %w", err)
		}
	}
	listening, err := exec.CommandContext(ctx, "ss", "-H", "-l", "-t", "-u", "-n", "-p").Output()
	if err != nil {
		return fmt.Errorf("ss: %w", err)
	}
	var b bytes.Buffer
	writePorts(&b, links != nil, loaded != "", onTrial, rules, parseSockets(string(listening)))
	_, err = out.Write(b.Bytes())
	return err
}

// writePorts writes the output of showPorts.
func writePorts(b *bytes.Buffer, enabled, loaded, onTrial bool, rules []firewall.Rule, listening []socket) {
	switch {
	case !enabled:
		b.WriteString("firewall: not enabled; what listens is reachable on the links with its address\n")
	case !loaded:
		b.WriteString("firewall: enabled and NOT in force; `journalctl -u basaltd` has the reason\n")
	case onTrial:
		b.WriteString("firewall: in force, on trial\n")
	default:
		b.WriteString("firewall: in force\n")
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	if enabled {
		fmt.Fprintln(w, "\nACCEPTED\tPROTOCOL\tPORTS\tLINKS\tFROM")
	}
	for _, r := range rules {
		from := string(r.From)
		if len(r.Sources) > 0 {
			from = strings.Trim(fmt.Sprint(r.Sources), "[]")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.Service, r.Protocol, strings.Trim(r.PortText(), "{ }"), strings.Join(r.Devices, ", "), from)
	}
	_ = w.Flush() // a buffer
	fmt.Fprintln(w, "\nLISTENING\tPROTOCOL\tPROGRAM")
	for _, s := range listening {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.address, s.protocol, s.program)
	}
	_ = w.Flush()
}

// socket is a socket that receives from other machines.
type socket struct{ protocol, address, program string }

// parseSockets parses the output of ss(8), without sockets of loopback addresses.
func parseSockets(out string) (all []socket) {
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) < 6 || strings.HasPrefix(f[4], "127.") || strings.HasPrefix(f[4], "[::1]") {
			continue
		}
		s := socket{protocol: f[0], address: f[4]}
		if len(f) > 6 { // users:(("sshd",pid=1,fd=3))
			if parts := strings.Split(f[6], `"`); len(parts) > 1 {
				s.program = parts[1]
			}
		}
		all = append(all, s)
	}
	return all
}
