package wireguard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
)

// The routing table of tunnels' packets, and the priority of the rule that selects it:
// before the main table's.
const (
	table    = "6081"
	rulePref = "6081"
)

// udp is the protocol's number: ip looks names up in /etc/protocols, which need not exist.
const udp = "17"

// owner marks rules and routes as the kernel's: systemd-networkd removes others that it
// does not have in its files, whenever it configures a link.
var owner = []string{"proto", "kernel"}

func family(a netip.Addr) string {
	if a.Is4() {
		return "-4"
	}
	return "-6"
}

// route sends the tunnels' packets from an address through an interface, and drops those
// to other addresses.
func (h Host) route(ctx context.Context, from netip.Addr, device string, to []netip.Addr) error {
	f := family(from)
	have, err := h.routes(ctx, f)
	if err != nil {
		return err
	}
	var all error
	if have["default"] != "" || have[""] == "" {
		_, err := h.run(ctx, "", "ip", f, "route", "replace", "blackhole", "default", "table", table, owner[0], owner[1])
		all = errors.Join(all, err)
	}
	for _, a := range to {
		if have[a.String()] != device {
			_, err := h.run(ctx, "", "ip", f, "route", "replace", a.String(), "dev", device, "src", from.String(), "table", table, owner[0], owner[1])
			all = errors.Join(all, err)
		}
		delete(have, a.String())
	}
	for a := range have {
		if a != "" && a != "default" {
			_, err := h.run(ctx, "", "ip", f, "route", "delete", a, "table", table)
			all = errors.Join(all, err)
		}
	}
	// After the routes: without the rule they have no effect.
	out, err := h.run(ctx, "", "ip", f, "rule", "show", "pref", rulePref)
	if err == nil && strings.TrimSpace(out) == "" {
		_, err = h.run(ctx, "", "ip", f, "rule", "add", "pref", rulePref, "ipproto", udp, "dport", strconv.Itoa(Port), "lookup", table, owner[0], owner[1])
	}
	return errors.Join(all, err)
}

// routes returns the interfaces of the table's routes by destination. The blackhole is
// the destination "".
func (h Host) routes(ctx context.Context, family string) (map[string]string, error) {
	out, err := h.run(ctx, "", "ip", family, "-json", "route", "show", "table", table)
	if says(err, "table does not exist") {
		return map[string]string{}, nil
	}
	if err != nil {
		return nil, err
	}
	var list []struct {
		Type   string `json:"type"`
		To     string `json:"dst"`
		Device string `json:"dev"`
	}
	if text := strings.TrimSpace(out); text != "" {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("list routes of table %s: %w", table, err)
		}
	}
	all := map[string]string{}
	for _, r := range list {
		if r.Type == "blackhole" {
			all[""] = "blackhole"
			continue
		}
		all[r.To] = r.Device
	}
	return all, nil
}

// unroute removes the rule and the routes: tunnels use the main table.
func (h Host) unroute(ctx context.Context, family string) error {
	out, fault := h.run(ctx, "", "ip", family, "rule", "show", "pref", rulePref)
	if fault == nil && strings.TrimSpace(out) != "" {
		_, fault = h.run(ctx, "", "ip", family, "rule", "delete", "pref", rulePref)
	}
	have, err := h.routes(ctx, family)
	if err == nil && len(have) > 0 {
		_, err = h.run(ctx, "", "ip", family, "route", "flush", "table", table)
	}
	return errors.Join(fault, err)
}

// filterTable is the nftables table of the rules that drop plain packets.
const filterTable = "basalt-tunnels"

// filter returns the rules that drop plain packets that arrive, and that are sent; "" for
// none. They replace the table in one transaction, and are apart from those of the
// declared network's firewall, which a node need not have. Nothing is sent in plain while
// rules keep it on the right way, but another program may remove those.
func filter(devices []string, arriving, sent bool) string {
	if !arriving && !sent {
		return ""
	}
	quoted := []string{`"lo"`}
	for _, d := range devices {
		quoted = append(quoted, strconv.Quote(d))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %[1]s\ndelete table inet %[1]s\ntable inet %[1]s {\n", filterTable)
	for _, c := range []struct {
		on         bool
		hook, name string
	}{{arriving, "input", "iifname"}, {sent, "output", "oifname"}} {
		if c.on {
			fmt.Fprintf(&b, "\tchain %[1]s {\n\t\ttype filter hook %[1]s priority -5; policy accept;\n\t\t%[2]s != { %[3]s } udp dport %[4]d counter drop\n\t}\n",
				c.hook, c.name, strings.Join(quoted, ", "), Port)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// filtering returns the rules that the kernel has; "" if it has none.
func (h Host) filtering(ctx context.Context) (string, error) {
	out, err := h.run(ctx, "", "nft", "--stateless", "list", "table", "inet", filterTable)
	if says(err, "No such file or directory") || errors.Is(err, exec.ErrNotFound) { // without nft no rules were set
		return "", nil
	}
	return out, err
}

func (h Host) setFilter(ctx context.Context, rules string) error {
	_, err := h.run(ctx, rules, "nft", "--file", "-")
	return err
}

func (h Host) removeFilter(ctx context.Context) error {
	have, err := h.filtering(ctx)
	if err != nil || have == "" {
		return err
	}
	_, err = h.run(ctx, "", "nft", "delete", "table", "inet", filterTable)
	return err
}
